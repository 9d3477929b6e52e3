"""Images in batches: the 8-bit pixels of the shards become floats; training images are shifted and mirrored at random.

Every random change is a function of (seed, draw, sample), like all noise on data: a sample changes alike on any number
of ranks, and differently every time it is drawn.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.config.inputs import PatchesConfig
from regard.config.run import AugmentationConfig
from regard.data.batches.arrays import (
    IGNORE_INDEX,
    BatchArrays,
    StoredSamples,
    derive_sample_keys,
    select_first_stream,
    shift_target,
)
from regard.data.batches.keyed_random import derive, integers
from regard.data.shards.shard import Shards, describe_shape
from regard.text.specials import SpecialIds

SHIFT_ROWS, SHIFT_COLUMNS, FLIP, MASK = range(100, 104)  # purpose of a random key; other tasks have lower numbers
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
class ImageTask:
    """Base of the tasks that read images; a row has one vector per patch, and one for the class token."""

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
        if not len(pixels):  # an empty batch, which keeps ranks in step
            return np.zeros((records.samples.size, *shape), np.float32)
        if self.augmentation is not None:
            pixels = augment(pixels, self.augmentation, self.seed, records)
        return normalize(pixels, self.patches)


@dataclass(frozen=True)
class ClassifyImages(ImageTask):
    """Image classification: one label per image."""

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch with one label per image."""
        images = self.make_images(records, records.tokens)
        return BatchArrays(
            np.where(records.labels < 0, IGNORE_INDEX, records.labels),
            images=images,
            source_valid=np.ones((len(images), self.n_patches), np.bool_),
        )


@dataclass(frozen=True)
class MaskedPatches(ImageTask):
    """Masked patches (He et al. 2022): the encoder reads the visible ones only, and the others are predicted.

    Every image has equally many masked patches, chosen at random. The label of a masked patch is 0, that of a visible
    one IGNORE_INDEX: the loss is the squared error of its pixels.
    """

    mask_probability: float = 0.75

    @property
    def n_visible(self) -> int:
        """The number of visible patches, at least 1."""
        return max(1, self.n_patches - round(self.mask_probability * self.n_patches))

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Count the visible patches, and the class token: the vectors that the encoder reads."""
        return np.full_like(lengths[:1], self.n_visible + int(self.patches.class_token))

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of images with the positions of their visible patches."""
        images = self.make_images(records, records.tokens)
        keys = derive(derive_sample_keys(self.seed, records, MASK)[:, None], np.arange(self.n_patches)[None])
        order = np.argsort(keys, axis=1)  # (B, patches)
        visible = np.sort(order[:, : self.n_visible], axis=1)
        labels = np.zeros(order.shape, np.int64)
        np.put_along_axis(labels, visible, IGNORE_INDEX, axis=1)
        first = int(self.patches.class_token)
        positions = np.concatenate((np.zeros((len(images), first), np.int64), visible + first), axis=1)
        return BatchArrays(labels, images=images, positions=positions)


@dataclass(frozen=True)
class CaptionImages(ImageTask):
    """Captions by teacher forcing: image; [bos] + caption -> caption + [eos]."""

    specials: SpecialIds | None = None
    needs: ClassVar[tuple[str, ...]] = ("image", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Count the vectors of each image, and the tokens of each caption with eos."""
        return np.concatenate((super().row_lengths(lengths), lengths[1:2] + 1))

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of images and their captions."""
        assert self.specials is not None  # noqa: S101 - it has a default because those of the base class have one
        is_image = select_first_stream(records.lengths)
        images = self.make_images(records, records.tokens[is_image])
        labels, target = shift_target(records, records.tokens[~is_image], self.specials)
        valid = np.ones((len(images), self.n_patches), np.bool_)
        return BatchArrays(labels, images=images, source_valid=valid, target=target)


def check_shape(shards: Shards, settings: PatchesConfig) -> tuple[int, int]:
    """Return height and width of the images of a corpus.

    Raises:
        RegardError: If the corpus has no images, or others than the model reads.
    """
    shape = shards.image_shape
    expected = (settings.channels, *(settings.size or (() if shape is None else shape[1:])))
    if shape is None:
        raise RegardError("The model reads images; the corpus has none.", hint="Give images, or another model.")
    if shape != expected:
        message = f"The corpus has images of {describe_shape(shape)}; the model reads {describe_shape(expected)}."
        size = f"size = [{expected[1]}, {expected[2]}], channels = {expected[0]}"
        raise RegardError(message, hint=f"Let the source convert them: {size}.")
    return shape[1:]
