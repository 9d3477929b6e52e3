"""Images as pipeline input and output: files, or arrays of 8-bit values."""

from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.config.inputs import PatchesConfig
from regard.config.sources import ImagesConfig
from regard.data.batches.images import normalize
from regard.data.example import CorpusError, Image
from regard.data.readers.images import convert_image, decode_image, read_image_file
from regard.tasks.inputs.adapter import InputBatch, MediaInput
from regard.tasks.replay import DrawnInput

AnyImage = str | PathLike[str] | Image | NDArray[np.uint8]  # a file, an example's image, or (height, width[, channels])
Pixels = NDArray[np.uint8]  # (channels, height, width)
BATCH_ROWS = 128  # images times beams


class ImageInput(MediaInput[AnyImage, Image]):
    """Images, converted to the size and channels of the training images and split into patches."""

    plural = "images"
    config_class = PatchesConfig
    config: PatchesConfig

    @property
    def summary(self) -> str:
        """The size of the images."""
        height, width = self.config.size or ("any", "any")
        return f"images of {height} x {width} x {self.config.channels}"

    def describe(self) -> dict[str, Any]:
        """Return the size and channels of the images."""
        return {"kind": "image", "size": self.config.size, "channels": self.config.channels}

    def samples(self) -> list[AnyImage]:
        """Return a black patch."""
        return [np.zeros((self.config.patch, self.config.patch, self.config.channels), np.uint8)]

    def decode(self, content: bytes, location: str, *, max_pixels: int, max_vectors: int) -> Image:
        """Decode an image file and convert it to the size and channels of the training images."""
        target = _make_target(self.config.size, self.config.channels)
        image = decode_image(content, target, location, max_pixels=max_pixels)
        if (vectors := self.count_vectors(image)) > max_vectors:
            message = f"The image has {vectors:,} patches; the maximum is {max_vectors:,}."
            raise RegardError(message, hint="Scale it down.")
        return image

    def load(self, item: AnyImage) -> Pixels:
        """Return the pixels (channels, height, width) of an image in the model's shape."""
        pixels, patch = load_pixels(item, self.config.size, self.config.channels), self.config.patch
        _, height, width = pixels.shape
        if height % patch or width % patch:
            message = f"{height} x {width} pixels are not divisible by the patch size {patch}."
            raise CorpusError(message, hint="Resize or pad the image.")
        return pixels

    def batches(self, items: Sequence[AnyImage], rows_per_item: int = 1) -> Iterator[InputBatch]:
        """Yield images in their order.

        A batch ends where the size changes, because a model without a fixed size accepts images of any size.
        """
        batch, batch_size = InputBatch([], []), max(1, BATCH_ROWS // rows_per_item)
        for index, image in enumerate(items):
            pixels = self.load(image)
            if batch.loaded and (len(batch.loaded) == batch_size or pixels.shape != batch.loaded[0].shape):
                yield batch
                batch = InputBatch([], [])
            batch.indices.append(index)
            batch.loaded.append(pixels)
        if batch.loaded:
            yield batch

    def stack(self, loaded: Sequence[Pixels], device: torch.device) -> tuple[Tensor, None]:
        """Return images of one size as a batch of normalized values (B, channels, height, width)."""
        return torch.from_numpy(normalize(np.stack(loaded), self.config)).to(device), None

    def measure(self, media: Image | Pixels) -> int:
        """Return the number of vectors of an image."""
        return self.config.count_vectors(*media.shape[1:])

    count_vectors = measure

    def name_vectors(self, loaded: Pixels) -> list[str]:
        """Return row and column of each patch; a class token precedes them."""
        rows, columns = (side // self.config.patch for side in loaded.shape[1:])
        names = [f"{row},{column}" for row in range(rows) for column in range(columns)]
        return ["class token", *names] if self.config.class_token else names

    def draw(self, loaded: Pixels, item: AnyImage) -> DrawnInput:  # noqa: ARG002
        """Return the image; each cell is a patch."""
        patch, first = self.config.patch, int(self.config.class_token)
        return DrawnInput(
            "image",
            loaded.transpose(1, 2, 0),
            grid=(loaded.shape[1] // patch, loaded.shape[2] // patch),
            cell=(patch, patch),
            names=[f"patch {name}" for name in self.name_vectors(loaded)[first:]],
            is_ordered=False,
            class_tokens=first,
        )


def load_pixels(image: AnyImage, size: tuple[int, int] | None, channels: int) -> Pixels:
    """Return the pixels (channels, height, width) of an image, resized if a size is given."""
    target = _make_target(size, channels)
    if isinstance(image, str | PathLike):
        image = decode_image(read_image_file(fspath(image)), target, fspath(image))
    elif isinstance(image, np.ndarray):
        image = _from_array(image)
    if size is not None and image.shape != (channels, *size):
        image = convert_image(image, target)
    return np.frombuffer(image.pixels, np.uint8).reshape(image.shape)


def save_image(pixels: NDArray[np.uint8], path: Path) -> None:
    """Write an image (height, width) or (height, width, 3) as a PNG file."""
    pillow = import_optional("PIL.Image", "images", "Writing images")
    pillow.fromarray(pixels).save(path, "PNG")


def _make_target(size: tuple[int, int] | None, channels: int) -> ImagesConfig:
    return ImagesConfig(path="image", size=size, channels=1 if channels == 1 else 3)


def _from_array(pixels: NDArray[np.uint8]) -> Image:
    shape = (*pixels.shape, 1)[:3]
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or shape[2] not in (1, 3):
        message = f"An array of shape {pixels.shape} and type {pixels.dtype} is not an image."
        raise RegardError(message, hint="Give 8-bit values, (height, width) or (height, width, 3).")
    planes = pixels.reshape(shape).transpose(2, 0, 1)
    return Image(shape[2], shape[0], shape[1], np.ascontiguousarray(planes).tobytes())
