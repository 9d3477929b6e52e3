"""Audio in batches: the 16-bit samples of the shards become log-mel spectrograms; training ones are masked at random.

Every mask is a function of (seed, draw, sample), like all noise on data: a clip gets the same mask on any number of
ranks, and a different one every time it is drawn.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.keyed_random import Bits, derive, uniform
from regard.config.inputs import MelConfig
from regard.config.run import SpecAugmentConfig
from regard.data.batches.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    StoredSamples,
    derive_sample_keys,
    range_mask,
)
from regard.data.mel import count_frames, log_mel, normalize
from regard.data.shards.shard import Shards

TIME_WIDTH, TIME_START, FREQUENCY_WIDTH, FREQUENCY_START = range(200, 204)  # purposes of random keys
MAX_MASKED_SHARE = 0.15  # of the frames, or of the bins, that a mask covers
MAX_MEASURED = 20_000  # audio clips whose spectrograms mean and deviation are computed from
MIN_DEVIATION = 1e-3  # of a bin that is nearly constant


def measure_bins(shards: Shards, settings: MelConfig) -> tuple[list[float], list[float]]:
    """Return mean and standard deviation of each mel bin over the frames of at most MAX_MEASURED audio clips.

    A larger corpus is sampled evenly.
    """
    total, squares, count = np.zeros(settings.bins), np.zeros(settings.bins), 0
    step = -(-len(shards) // MAX_MEASURED)
    for number, shard in enumerate(shards.shards):
        tokens, offsets = shards.load_tokens(number), shard.offsets()
        for sample in range(-int(shards.sample_offsets[number]) % step, len(shard), step):
            start = int(offsets[sample])
            values = log_mel(_to_samples(tokens[start : start + int(shard.lengths[0, sample])]), settings)
            wide = values.astype(np.float64)
            total, squares, count = total + wide.sum(axis=0), squares + (wide**2).sum(axis=0), count + len(values)
    means = total / count
    deviations = np.maximum(np.sqrt(np.maximum(squares / count - means**2, 0)), MIN_DEVIATION)
    return [round(value, 6) for value in means.tolist()], [round(value, 6) for value in deviations.tolist()]


def check_rate(shards: Shards, settings: MelConfig) -> int:
    """Return the samples per second of the audio clips of a corpus.

    Raises:
        RegardError: If the corpus has no audio clips, or their sample rate differs from the model's.
    """
    rate = shards.sample_rate
    if rate is None:
        raise RegardError(
            "The model reads audio clips, but the corpus has none.", hint="Give audio clips, or another model."
        )
    if settings.rate not in (None, rate):
        message = f"The corpus has audio clips of {rate:,} samples per second; the model reads {settings.rate:,}."
        raise RegardError(message, hint=f"Convert them: `ffmpeg -i IN -ar {settings.rate} OUT.wav`.")
    return rate


def mask_spectrogram(spectrogram: FloatArray, settings: SpecAugmentConfig, keys: dict[int, Bits]) -> None:
    """Mask bands of frames and of bins in place: they become 0, the mean of normalized values.

    Args:
        spectrogram: (frames, bins).
        settings: Number and size of the masks.
        keys: A random key (1) for each purpose.
    """
    masks = (
        (0, settings.time_masks, TIME_WIDTH, TIME_START),
        (1, settings.frequency_masks, FREQUENCY_WIDTH, FREQUENCY_START),
    )
    for axis, count, width_purpose, start_purpose in masks:
        size = spectrogram.shape[axis]
        n_widths = int(MAX_MASKED_SHARE * size) + 1
        widths = (uniform(derive(keys[width_purpose], np.arange(count))) * n_widths).astype(np.int64)
        starts = (uniform(derive(keys[start_purpose], np.arange(count))) * (size - widths + 1)).astype(np.int64)
        for start, width in zip(starts.tolist(), widths.tolist(), strict=True):
            band = slice(start, start + width)
            spectrogram[band if axis == 0 else slice(None), slice(None) if axis == 0 else band] = 0


@dataclass(frozen=True)
class AudioRowMaker:
    """Base of the rows of audio clips; the length of a row counts the frames of its spectrogram."""

    mel: MelConfig
    augmentation: SpecAugmentConfig | None = None
    seed: int = 1
    packs_sequences = False

    def count_frames(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the number of frames of audio clips from their numbers of samples."""
        return count_frames(lengths, self.mel)

    def make_spectrograms(
        self, samples: NDArray[np.integer], lengths: IntArray, records: StoredSamples
    ) -> tuple[FloatArray, BoolArray]:
        """Return spectrograms (B, frames, bins), randomly masked and normalized, and the mask of valid frames."""
        n_frames = self.count_frames(lengths).astype(np.int64)
        width = records.padded_width(int(n_frames.max()))
        spectrograms = np.zeros((lengths.size, width, self.mel.bins), np.float32)
        purposes = (TIME_WIDTH, TIME_START, FREQUENCY_WIDTH, FREQUENCY_START)
        keys = {purpose: derive_sample_keys(self.seed, records, purpose) for purpose in purposes}
        start = 0
        for row, length in enumerate(lengths.tolist()):
            if not length:  # an empty batch, which keeps ranks in sync
                continue
            values = normalize(log_mel(_to_samples(samples[start : start + length]), self.mel), self.mel)
            if self.augmentation is not None:
                mask_spectrogram(values, self.augmentation, {purpose: keys[purpose][row : row + 1] for purpose in keys})
            spectrograms[row, : len(values)] = values
            start += length
        return spectrograms, range_mask(0, n_frames, width)


def _to_samples(tokens: NDArray[np.integer]) -> NDArray[np.int16]:
    """Return stored values as samples: 16 bits with a sign."""
    return tokens.astype(np.uint16).view(np.int16)
