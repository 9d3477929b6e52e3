"""The reader of images: folders, idx files and Parquet; damaged and enormous files are refused before they are read."""

import gzip
import struct
import tracemalloc
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image as Pillow

from regard.config.sources import DocumentsConfig, ImagesConfig, ParquetConfig
from regard.data.corpus import Corpus
from regard.data.example import CorpusError, Defects, Example
from regard.data.readers import read
from regard.data.readers.detect import detect_source, make_image_source
from regard.data.readers.images import decode_image

GRAY = np.arange(12, dtype=np.uint8).reshape(3, 4)
COLOR = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)


def save(path: Path, pixels: Any, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Pillow.fromarray(pixels).save(path, **options)
    return path


def read_all(source: ImagesConfig) -> tuple[list[Example], Defects]:
    defects = Defects(hash_files=True)
    return list(read(source, defects)), defects


def pixels_of(example: Example) -> np.ndarray:
    assert example.image is not None
    return np.frombuffer(example.image.pixels, np.uint8).reshape(example.image.shape)


def make_idx(shape: tuple[int, ...], values: bytes) -> bytes:
    return struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + values


def make_png(width: int, height: int, depth: int = 8, color: int = 0, content: bytes = b"\0" * 9) -> bytes:
    """A PNG whose header claims a size and a kind of pixels, with hardly any data."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(content)) + chunk(b"IEND", b"")


def test_folders_are_labels(tmp_path: Path) -> None:
    save(tmp_path / "cat" / "b.png", GRAY)
    save(tmp_path / "cat" / "deep" / "a.png", GRAY + 1)
    save(tmp_path / "dog" / "c.png", GRAY + 2)
    (tmp_path / "dog" / "notes.txt").write_text("no image")
    source = detect_source([str(tmp_path)])
    assert source == ImagesConfig(path=str(tmp_path))
    examples, defects = read_all(source)
    assert [example.label for example in examples] == ["cat", "cat", "dog"]
    assert [pixels_of(example)[0].tolist() for example in examples] == [(GRAY + n).tolist() for n in (0, 1, 2)]
    assert dict(defects.counts) == {"file that is no image left out": 1}
    assert set(defects.file_infos) == {str(example.location.file) for example in examples}, "checksums in the same pass"
    assert Corpus([source]).hash_files()[examples[0].location.file] == defects.file_infos[examples[0].location.file]


def test_colours_are_stored_channel_after_channel(tmp_path: Path) -> None:
    save(tmp_path / "a" / "x.png", COLOR)
    (example,), _ = read_all(ImagesConfig(path=str(tmp_path)))
    assert pixels_of(example).tolist() == COLOR.transpose(2, 0, 1).tolist()
    (gray,), _ = read_all(ImagesConfig(path=str(tmp_path), channels=1))
    assert pixels_of(gray).shape == (1, 3, 4)


def test_images_are_scaled_and_cropped_at_the_centre(tmp_path: Path) -> None:
    halves = np.zeros((8, 16), np.uint8)
    halves[:, 4:12] = 200  # the middle square
    save(tmp_path / "a" / "x.png", halves)
    (example,), _ = read_all(ImagesConfig(path=str(tmp_path), size=(8, 8)))
    assert (pixels_of(example) == 200).all(), "the sides are cut off"
    (example,), _ = read_all(ImagesConfig(path=str(tmp_path), size=(4, 4), channels=3))
    assert pixels_of(example).shape == (3, 4, 4)


def test_transparency_is_counted_and_wide_values_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "a" / "x.png", np.full((2, 2, 4), 7, np.uint8))
    examples, defects = read_all(ImagesConfig(path=str(tmp_path)))
    assert pixels_of(examples[0]).shape == (3, 2, 2)
    assert defects.counts["transparency left out"] == 1
    save(tmp_path / "a" / "x.png", np.full((2, 2), 3000, np.uint16))
    with pytest.raises(CorpusError, match="more than 8 bits"):
        read_all(ImagesConfig(path=str(tmp_path)))
    (tmp_path / "a" / "x.png").write_bytes(make_png(2, 2, 16, 2, bytes(26)))  # Pillow: mode RGB
    with pytest.raises(CorpusError, match="more than 8 bits"):
        read_all(ImagesConfig(path=str(tmp_path)))
    (tmp_path / "a" / "x.png").write_bytes(make_png(2, 2, 8, 2, bytes(14)))
    assert pixels_of(read_all(ImagesConfig(path=str(tmp_path)))[0][0]).shape == (3, 2, 2)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files(tmp_path: Path, suffix: str) -> None:
    write = gzip.compress if suffix else bytes
    path = tmp_path / f"train-images-idx3-ubyte{suffix}"
    path.write_bytes(write(make_idx((2, 3, 4), GRAY.tobytes() + (GRAY + 9).tobytes())))
    assert make_image_source(str(path)).labels is None
    labels = tmp_path / f"train-labels-idx1-ubyte{suffix}"
    labels.write_bytes(write(make_idx((2,), b"\x05\x07")))
    source = detect_source([str(path)])
    assert source == ImagesConfig(path=str(path), labels=str(labels))
    examples, _ = read_all(source)
    assert [(example.label, example.location.line) for example in examples] == [("5", 1), ("7", 2)]
    assert pixels_of(examples[1])[0].tolist() == (GRAY + 9).tolist()
    assert set(Corpus([source]).hash_files()) == {str(path), str(labels)}
    labels.write_bytes(write(make_idx((3,), b"\x05\x07\x07")))
    with pytest.raises(CorpusError, match="there are 2 images"):
        read_all(source)


def test_parquet_as_the_hub_stores_images(tmp_path: Path) -> None:
    encoded = BytesIO()
    Pillow.fromarray(GRAY).save(encoded, "PNG")
    table = pyarrow.table({"image": [{"bytes": encoded.getvalue(), "path": None}] * 2, "label": [3, 1]})
    pyarrow.parquet.write_table(table, tmp_path / "train.parquet")
    examples, _ = read_all(make_image_source(str(tmp_path)))
    assert [example.label for example in examples] == ["3", "1"]
    assert pixels_of(examples[1])[0].tolist() == GRAY.tolist()
    assert not isinstance(detect_source([str(tmp_path)]), DocumentsConfig | ParquetConfig), (
        "Parquet without text holds images"
    )
    pyarrow.parquet.write_table(table.rename_columns(["picture", "label"]), tmp_path / "train.parquet")
    with pytest.raises(CorpusError, match="no column 'image'"):
        read_all(ImagesConfig(path=str(tmp_path)))


HOSTILE = {
    "huge.png": (make_png(100_000, 100_000), "pixels"),
    "large.png": (make_png(10_000, 10_000), "10,000 x 10,000 pixels"),
    "truncated.png": (make_png(64, 64)[:-14], "damaged or truncated"),
    "text.png": (b"hello", "not an image"),
    "postscript.png": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_image_files_teach_and_allocate_nothing(tmp_path: Path, name: str) -> None:
    content, message = HOSTILE[name]
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / name).write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(CorpusError, match=message) as caught:
            read_all(ImagesConfig(path=str(tmp_path)))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert caught.value.location == str(folder / name)
    assert caught.value.hint


IDX = {
    "four billion images": (make_idx((4_000_000_000, 28, 28), bytes(784)), "within record 2 of 4,000,000,000"),
    "enormous images": (make_idx((1, 65_535, 65_535), b""), "more than .* pixels"),
    "no header": (b"\0\0", "within the header"),
    "another type": (struct.pack(">HBBI", 0, 13, 1, 4), "not an idx file"),
    "labels as images": (make_idx((4,), b"1234"), "3 or 4 dimensions"),
    "more than promised": (make_idx((1, 2, 2), b"123456"), "longer than its header"),
}


@pytest.mark.parametrize("name", IDX)
def test_hostile_idx_files_teach_and_allocate_nothing(tmp_path: Path, name: str) -> None:
    content, message = IDX[name]
    path = tmp_path / "x-idx3-ubyte"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(CorpusError, match=message):
            read_all(ImagesConfig(path=str(path)))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_folder_without_images_says_what_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(CorpusError, match="no images"):
        read_all(ImagesConfig(path=str(tmp_path)))
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"")
    with pytest.raises(CorpusError, match="idx files"):
        read_all(ImagesConfig(path=str(tmp_path)))


def test_an_image_turned_by_its_camera_is_turned_back() -> None:
    picture, encoded = Pillow.fromarray(GRAY), BytesIO()
    exif = Pillow.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    picture.save(encoded, "PNG", exif=exif)
    assert decode_image(encoded.getvalue(), ImagesConfig(path="x"), "x").shape == (1, 4, 3)
