"""Images as the pipelines take and give them: files, or arrays of 8-bit values."""

from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.config.inputs import PatchesConfig
from regard.config.sources import ImagesConfig
from regard.data.example import CorpusError, Image
from regard.data.readers.images import convert_image, decode_image, read_image_file

AnyImage = str | PathLike[str] | Image | NDArray[np.uint8]  # a file, an example's image, or (height, width[, channels])


def as_images(images: AnyImage | Sequence[AnyImage]) -> tuple[list[AnyImage], bool]:
    """Return a list of images, and whether only one was given."""
    if isinstance(images, str | PathLike | Image | np.ndarray):
        return [images], True
    return list(images), False


def load_pixels(image: AnyImage, size: tuple[int, int] | None, channels: int) -> NDArray[np.uint8]:
    """Return the pixels (channels, height, width) of an image; without a size it keeps its own."""
    target = ImagesConfig(path="image", size=size, channels=1 if channels == 1 else 3)
    if isinstance(image, str | PathLike):
        image = decode_image(read_image_file(fspath(image)), target, fspath(image))
    elif isinstance(image, np.ndarray):
        image = _from_array(image)
    if size is not None and image.shape != (channels, *size):
        image = convert_image(image, target)
    return np.frombuffer(image.pixels, np.uint8).reshape(image.shape)


def load_patches(image: AnyImage, patches: PatchesConfig) -> NDArray[np.uint8]:
    """Return the pixels (channels, height, width) of an image in the shape that a model of patches reads."""
    pixels = load_pixels(image, patches.size, patches.channels)
    _, height, width = pixels.shape
    if height % patches.patch or width % patches.patch:
        message = f"{height} x {width} pixels do not divide into patches of {patches.patch}."
        raise CorpusError(message, hint="Resize or pad the image.")
    return pixels


def load_batches(images: Sequence[AnyImage], patches: PatchesConfig, batch_size: int) -> Iterator[NDArray[np.uint8]]:
    """Yield images in their order as batches (B, channels, height, width).

    A batch ends where the size changes: a model of patches without a fixed size reads images of any.
    """
    batch: list[NDArray[np.uint8]] = []
    for image in images:
        pixels = load_patches(image, patches)
        if batch and (len(batch) == batch_size or pixels.shape != batch[0].shape):
            yield np.stack(batch)
            batch = []
        batch.append(pixels)
    if batch:
        yield np.stack(batch)


def save_image(pixels: NDArray[np.uint8], path: Path) -> None:
    """Write an image (height, width) or (height, width, 3) as a PNG file."""
    pillow = import_optional("PIL.Image", "images", "Writing images")
    pillow.fromarray(pixels).save(path, "PNG")


def _from_array(pixels: NDArray[np.uint8]) -> Image:
    shape = (*pixels.shape, 1)[:3]
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or shape[2] not in (1, 3):
        message = f"An array of shape {pixels.shape} and type {pixels.dtype} is no image."
        raise RegardError(message, hint="Give 8-bit values, (height, width) or (height, width, 3).")
    planes = pixels.reshape(shape).transpose(2, 0, 1)
    return Image(shape[2], shape[0], shape[1], np.ascontiguousarray(planes).tobytes())
