"""Reader for images: a folder of image files per label, a table of files, idx files (MNIST), or Parquet.

Image files and images in Parquet are decoded by Pillow (extra `images`); idx files need no extra. The size that a
header claims is checked before memory is allocated for the pixels.
"""

import struct
import warnings
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from regard.base.extras import import_optional
from regard.base.limits import PIXELS
from regard.config.sources import ImagesConfig
from regard.data.example import CorpusError, Defects, Example, Image, Location
from regard.data.readers.jsonl import format_label
from regard.data.readers.media_files import iter_table, read_folder, read_table, read_whole
from regard.data.readers.parquet import BATCH_ROWS, open_parquet
from regard.data.readers.text_files import (
    TruncatedError,
    is_url,
    list_files,
    read_decompressed,
    strip_compression,
)

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "PPM", "TIFF")  # other decoders of Pillow are never tried
MAX_FILE_BYTES = 1 << 28
IMAGE_COLUMN, LABEL_COLUMN = "image", "label"  # of Parquet, as on the Hugging Face Hub
_GRAY_MODES = ("1", "L", "LA", "La")
_WIDE_MODES = ("I", "F")  # and "I;16": more than 8 bits per value
_PNG_START, _PNG_DEPTH = (
    b"\x89PNG\r\n\x1a\n",
    24,
)  # Pillow opens 16-bit colors in an 8-bit mode, so the header is checked
_IDX_BYTES = 8  # the type code of unsigned bytes, the only one that holds images
_INTACT = "Replace the file with an intact copy."


def read_images(source: ImagesConfig, defects: Defects) -> Iterator[Example]:
    """Read the images of a folder, of a table, of an idx file or of Parquet files."""
    path = source.path
    if is_idx(path):
        return _read_idx(source, defects)
    load = partial(_load_image, source=source, defects=defects)
    if is_image_table(path):
        return read_table(source, load, defects)
    files = list_files(path, defects)
    if PurePosixPath(files[0]).suffix == ".parquet":
        return (example for file in files for example in _read_parquet(file, source, defects))
    if not any(map(is_image_file, files)):
        if any(is_idx(file) for file in files):
            hint = "Give the path of one idx file of images, such as train-images-idx3-ubyte.gz."
            raise CorpusError("The folder holds idx files.", location=path, hint=hint)
        hint = f"Give a folder with one folder per label, of files that end in {', '.join(SUFFIXES)}."
        raise CorpusError("There are no images.", location=path, hint=hint)
    return read_folder(files, path, is_image_file, "image", load, defects)


def _load_image(file: str, source: ImagesConfig, defects: Defects) -> Image:
    return decode_image(read_image_file(file, defects), source, file, defects)


def is_idx(path: str) -> bool:
    """Whether a path is named like an idx file: train-images-idx3-ubyte.gz, train-images.idx3-ubyte."""
    return "idx" in strip_compression(path).name and not Path(path).is_dir()


def is_image_file(path: str) -> bool:
    """Whether the suffix of a path is that of an image."""
    return PurePosixPath(path).suffix.lower() in SUFFIXES


def is_image_table(path: str) -> bool:
    """Whether a path is a table of images, not an image, an idx or Parquet file, or a folder."""
    if is_idx(path) or is_image_file(path) or PurePosixPath(path).suffix == ".parquet":
        return False
    return list_files(path, Defects()) == [path]


def list_image_files(source: ImagesConfig, defects: Defects) -> list[str]:
    """List every file of a source: the images, and the table that names them or the file of labels."""
    if is_image_table(source.path):
        return [source.path, *dict.fromkeys(file for _, file, _ in iter_table(source, defects))]
    return [file for path in source.paths for file in list_files(path, defects)]


def decode_image(
    content: bytes, source: ImagesConfig, location: str, defects: Defects | None = None, *, max_pixels: int = PIXELS
) -> Image:
    """Decode an image file and bring it to the size and channels of the source.

    Args:
        content: Bytes of the file.
        source: Size and channels of the result.
        location: Name of the file in errors.
        defects: Where transparency is counted.
        max_pixels: An image whose header declares more pixels is an error before decoding.

    Raises:
        CorpusError: The content is not an image, is damaged, or is too large.
    """
    pillow, operations = (import_optional(f"PIL.{name}", "images", "Reading images") for name in ("Image", "ImageOps"))
    defects = defects or Defects()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # the limit below is lower
            picture = pillow.open(BytesIO(content), formats=FORMATS)
            _check_size(picture.height, picture.width, location, max_pixels)
            picture.load()
            picture = operations.exif_transpose(picture)
    except pillow.DecompressionBombError:
        raise _too_large(location, max_pixels) from None
    except pillow.UnidentifiedImageError:
        message = f"This is not an image in one of the formats {', '.join(FORMATS)}."
        raise CorpusError(message, location=location, hint="Convert it to PNG, or remove it.") from None
    except (OSError, SyntaxError, ValueError, struct.error, EOFError, IndexError) as error:
        message = f"The image is damaged or truncated: {error}."
        raise CorpusError(message, location=location, hint=_INTACT) from error
    is_wide_png = content.startswith(_PNG_START) and content[_PNG_DEPTH : _PNG_DEPTH + 1] == b"\x10"
    if picture.mode.split(";")[0] in _WIDE_MODES or is_wide_png:
        message = "The image has more than 8 bits per value."
        raise CorpusError(message, location=location, hint="Convert it to 8 bits.")
    if picture.mode in ("LA", "La", "RGBA", "RGBa", "PA") or "transparency" in picture.info:
        defects.add("transparency left out", Location(location, 1))
    channels = source.channels or (1 if picture.mode in _GRAY_MODES else 3)
    picture = picture.convert("L" if channels == 1 else "RGB")
    return _resize(picture, channels, source)


def _resize(picture: Any, channels: int, source: ImagesConfig) -> Image:
    """Scale a picture of Pillow to the size of the source, and crop it at the center."""
    if source.size is not None and (picture.height, picture.width) != source.size:
        operations = import_optional("PIL.ImageOps", "images", "Resizing images")
        pillow = import_optional("PIL.Image", "images", "Resizing images")
        picture = operations.fit(picture, (source.size[1], source.size[0]), pillow.Resampling.BICUBIC)
    bands = [band.tobytes() for band in picture.split()]
    return Image(channels, picture.height, picture.width, b"".join(bands))


def _check_size(height: int, width: int, location: str, max_pixels: int = PIXELS) -> None:
    if height * width > max_pixels:
        raise _too_large(location, max_pixels, f"{width:,} x {height:,} pixels")
    if not height or not width:
        raise CorpusError("The image has no pixels.", location=location, hint=_INTACT)


def _too_large(location: str, max_pixels: int, size: str = "The image") -> CorpusError:
    message = f"{size} {'is' if size == 'The image' else 'are'} more than {max_pixels:,} pixels."
    return CorpusError(message, location=location, hint="Scale the image down, or remove it.")


def read_image_file(path: str, defects: Defects | None = None) -> bytes:
    """Read the bytes of an image file; raise an error if it is far too large."""
    return read_whole(path, MAX_FILE_BYTES, "Scale it down.", defects)


def find_idx_labels(path: str) -> str | None:
    """Return the label file next to an idx image file, if there is one."""
    name = PurePosixPath(path).name
    labels = path[: len(path) - len(name)] + name.replace("images", "labels").replace("idx3", "idx1")
    return labels if labels != path and not is_url(path) and Path(labels).is_file() else None


def _read_idx(source: ImagesConfig, defects: Defects) -> Iterator[Example]:
    path, labels_path = source.path, source.labels
    reader = _IdxReader(path, defects)
    if len(reader.shape) not in (3, 4):
        message = f"An idx image file has 3 or 4 dimensions; this one has {len(reader.shape)}."
        raise CorpusError(message, location=path, hint="Give the image file.")
    count, height, width, channels = (*reader.shape, 1)[:4]
    if channels not in (1, 3):
        raise CorpusError(f"The images have {channels} channels, not 1 or 3.", location=path, hint="Convert them.")
    _check_size(height, width, path)
    labels = None if labels_path is None else _IdxReader(labels_path, defects)
    if labels is not None and labels.shape != (count,):
        message = f"The label file has the shape {labels.shape}, but there are {count:,} images."
        raise CorpusError(message, location=labels_path, hint="Give the labels of these images.")
    for number in range(1, count + 1):
        label = None if labels is None else str(labels.take(1, number)[0])
        values = reader.take(height * width * channels, number)
        pixels = b"".join(values[channel::channels] for channel in range(channels))
        image = convert_image(Image(channels, height, width, pixels), source)
        yield Example(Location(path, number), "", label=label, image=image)
    for file in (reader, *(() if labels is None else (labels,))):
        file.check_end()


def convert_image(image: Image, source: ImagesConfig) -> Image:
    """Bring an image to the size and channels of the source."""
    target_shape = (source.channels or image.channels, *(source.size or (image.height, image.width)))
    if target_shape == image.shape:
        return image
    pillow = import_optional("PIL.Image", "images", "Resizing images")
    plane = image.height * image.width
    planes = [image.pixels[start : start + plane] for start in range(0, len(image.pixels), plane)]
    bands = [pillow.frombytes("L", (image.width, image.height), content) for content in planes]
    picture = bands[0] if len(bands) == 1 else pillow.merge("RGB", bands)
    return _resize(picture.convert("L" if target_shape[0] == 1 else "RGB"), target_shape[0], source)


class _IdxReader:
    """Reads an idx file from its start to its end: a header with the shape, then bytes."""

    def __init__(self, path: str, defects: Defects) -> None:
        self._path, self._chunks, self._buffer = path, read_decompressed(path, defects), b""
        self.shape: tuple[int, ...] = ()
        head = self.take(4, 0)
        if head[:2] != b"\0\0" or head[2] != _IDX_BYTES or not 1 <= head[3] <= 4:
            message = "This is not an idx file of unsigned bytes: it does not start with 0, 0, 8 and 1 to 4."
            raise CorpusError(message, location=path, hint="Give an idx file, such as train-images-idx3-ubyte.gz.")
        self.shape = struct.unpack(f">{head[3]}I", self.take(4 * head[3], 0))

    def take(self, size: int, number: int) -> bytes:
        """Return the next bytes; `number` is that of the image, 0 for the header."""
        try:
            while len(self._buffer) < size and (chunk := next(self._chunks, b"")):
                self._buffer += chunk
        except TruncatedError as error:
            raise CorpusError(error.message, location=str(Location(self._path, number)), hint=error.hint) from error
        if len(self._buffer) < size:
            count = "the header" if number == 0 else f"record {number:,} of {self.shape[0]:,}"
            raise CorpusError(f"The file ends within {count}.", location=self._path, hint=_INTACT)
        content, self._buffer = self._buffer[:size], self._buffer[size:]
        return content

    def check_end(self) -> None:
        """Raise CorpusError unless the file ends here."""
        if self._buffer or next(self._chunks, b""):
            raise CorpusError("The file is longer than its header declares.", location=self._path, hint=_INTACT)


def _read_parquet(path: str, source: ImagesConfig, defects: Defects) -> Iterator[Example]:
    row = 1
    with open_parquet(path, lambda: row) as file:
        names = file.schema_arrow.names
        columns = [IMAGE_COLUMN, *([LABEL_COLUMN] if LABEL_COLUMN in names else [])]
        for name in columns:
            if names.count(name) != 1:
                hint = f"Rename the column of the images; the file has these columns: {', '.join(names)}."
                raise CorpusError(f"There is no column '{name}'.", location=path, hint=hint)
        for batch in file.iter_batches(batch_size=BATCH_ROWS // 16, columns=columns, use_threads=False):
            for record in batch.to_pylist():
                location, value = Location(path, row), record[IMAGE_COLUMN]
                content = value.get("bytes") if isinstance(value, dict) else value
                if not isinstance(content, bytes):
                    message = f"Column '{IMAGE_COLUMN}' does not hold encoded images."
                    raise CorpusError(message, location=str(location), hint="Store the bytes of the image files in it.")
                label = format_label(record[LABEL_COLUMN], LABEL_COLUMN, location) if LABEL_COLUMN in columns else None
                image = decode_image(content, source, str(location), defects)
                yield Example(location, "", label=label, image=image)
                row += 1
