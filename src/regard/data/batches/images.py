"""Images in batches: the 8-bit pixels of the shards become floats; training images are shifted and mirrored at random.

Every random change is a function of (seed, draw, sample), like all noise on data: a sample changes in the same way on
any number of ranks, and differently every time it is drawn.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.keyed_random import integers
from regard.config.inputs import PatchesConfig
from regard.config.run import AugmentationConfig
from regard.data.batches.arrays import (
    StoredSamples,
    derive_sample_keys,
)
from regard.data.shards.shard import Shards, describe_shape, select_first_stream

SHIFT_ROWS, SHIFT_COLUMNS, FLIP = range(100, 103)  # purposes of random keys; every task has its own numbers
LEVELS = 256
Pixels = NDArray[np.uint8]  # (N, channels, height, width)


def measure_channels(shards: Shards) -> tuple[list[float], list[float]]:
    """Return mean and standard deviation of each channel of a corpus of images, for pixels from 0 to 1."""
    assert shards.image_shape is not None  # noqa: S101 - the caller has images
    counts = np.zeros((shards.image_shape[0], LEVELS), np.int64)  # exact, so that all machines agree
    for number in range(len(shards.shards)):
        pixels, shard = shards.load_tokens(number), shards.shards[number]
        if shard.streams != ("image",):
            pixels = pixels[select_first_stream(shard.lengths)]
        pixels = pixels.reshape(-1, shards.image_shape[0], np.prod(shards.image_shape[1:]))
        for channel in range(len(counts)):
            counts[channel] += np.bincount(pixels[:, channel].ravel(), minlength=LEVELS)
    levels, totals = np.arange(LEVELS) / (LEVELS - 1), counts.sum(axis=1)
    means = counts @ levels / totals
    variances = counts @ levels**2 / totals - means**2
    deviations = np.maximum(np.sqrt(np.maximum(variances, 0)), 1 / (LEVELS - 1))  # a constant channel has none
    return [round(value, 6) for value in means.tolist()], [round(value, 6) for value in deviations.tolist()]


def normalize(pixels: Pixels, settings: PatchesConfig) -> NDArray[np.float32]:
    """Return pixels as floats from 0 to 1, minus the mean of their channel and divided by its deviation."""
    levels = np.arange(LEVELS, dtype=np.float32) / np.float32(LEVELS - 1)
    table: NDArray[np.float32] = np.tile(levels, (settings.channels, 1))
    if settings.mean:
        table -= np.array(settings.mean, np.float32)[:, None]
    if settings.std:
        table /= np.array(settings.std, np.float32)[:, None]
    return table[np.arange(settings.channels)[:, None, None], pixels]


def augment(pixels: Pixels, settings: AugmentationConfig, seed: int, records: StoredSamples) -> Pixels:
    """Shift and mirror images at random; pixels at the edge are repeated."""
    count, channels, height, width = pixels.shape
    rows, columns = np.tile(np.arange(height), (count, 1)), np.tile(np.arange(width), (count, 1))
    if settings.flip:
        is_flipped = integers(derive_sample_keys(seed, records, FLIP), 2).astype(bool)
        columns[is_flipped] = columns[is_flipped, ::-1]
    if settings.shift:
        shifts = [
            integers(derive_sample_keys(seed, records, purpose), 2 * settings.shift + 1) - settings.shift
            for purpose in (SHIFT_ROWS, SHIFT_COLUMNS)
        ]
        rows = np.clip(rows + shifts[0][:, None], 0, height - 1)
        columns = np.clip(columns + shifts[1][:, None], 0, width - 1)
    sample, channel = np.arange(count)[:, None, None, None], np.arange(channels)[None, :, None, None]
    return pixels[sample, channel, rows[:, None, :, None], columns[:, None, None, :]]


@dataclass(frozen=True)
class ImageRowMaker:
    """Base of the rows of images; a row has one vector per patch, and one for the class token."""

    patches: PatchesConfig
    size: tuple[int, int]
    augmentation: AugmentationConfig | None = None
    seed: int = 1
    packs_sequences = False
    needs: ClassVar[tuple[str, ...]] = ("image",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Count the patches of each image, and the class token."""
        return lengths[:1] // (self.patches.channels * self.patches.patch**2) + int(self.patches.class_token)

    @property
    def n_patches(self) -> int:
        """The number of patches of an image."""
        return self.patches.count_vectors(*self.size) - int(self.patches.class_token)

    def make_images(self, records: StoredSamples, values: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return the images (B, channels, height, width) of stored values, changed at random and normalized."""
        shape = (self.patches.channels, *self.size)
        pixels = values.astype(np.uint8, copy=False).reshape(-1, *shape)
        if not len(pixels):  # an empty batch, which keeps ranks in sync
            return np.zeros((records.samples.size, *shape), np.float32)
        if self.augmentation is not None:
            pixels = augment(pixels, self.augmentation, self.seed, records)
        return normalize(pixels, self.patches)


def check_shape(shards: Shards, settings: PatchesConfig) -> tuple[int, int]:
    """Return height and width of the images of a corpus.

    Raises:
        RegardError: If the corpus has no images, or their shape differs from the model's.
    """
    shape = shards.image_shape
    expected = (settings.channels, *(settings.size or (() if shape is None else shape[1:])))
    if shape is None:
        raise RegardError("The model reads images, but the corpus has none.", hint="Give images, or another model.")
    if shape != expected:
        message = f"The corpus has images of {describe_shape(shape)}; the model reads {describe_shape(expected)}."
        size = f"size = [{expected[1]}, {expected[2]}], channels = {expected[0]}"
        raise RegardError(message, hint=f"Convert them with the settings of the source: {size}.")
    return shape[1:]
