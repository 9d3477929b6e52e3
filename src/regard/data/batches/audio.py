"""Audio in batches: the 16-bit samples of the shards become log-mel spectrograms; training ones are masked at random.

Every mask is a function of (seed, draw, sample), like all noise on data: an audio clip is masked alike on any number of
ranks, and differently every time it is drawn.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.config.inputs import MelConfig
from regard.config.run import SpecAugmentConfig
from regard.data.batches.arrays import (
    IGNORE_INDEX,
    BatchArrays,
    BoolArray,
    FloatArray,
    IntArray,
    StoredSamples,
    derive_sample_keys,
    range_mask,
    select_first_stream,
    shift_target,
)
from regard.data.batches.keyed_random import Bits, derive, uniform
from regard.data.mel import count_frames, log_mel, normalize
from regard.data.shards.shard import Shards
from regard.text.specials import SpecialIds

TIME_WIDTH, TIME_START, FREQUENCY_WIDTH, FREQUENCY_START = range(200, 204)  # purposes of random keys
MAX_MASKED_SHARE = 0.15  # of the frames, or of the bins, that a mask covers
MAX_MEASURED = 20_000  # audio clips whose spectrograms mean and deviation are computed from
MIN_DEVIATION = 1e-3  # of a bin that is nearly constant


def measure_bins(shards: Shards, settings: MelConfig) -> tuple[list[float], list[float]]:
    """Return mean and standard deviation of each mel bin over the frames of at most MAX_MEASURED audio clips.

    Of a larger corpus, audio clips at even distances are measured.
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
        RegardError: If the corpus has no audio clips, or others than the model reads.
    """
    rate = shards.sample_rate
    if rate is None:
        raise RegardError(
            "The model reads audio clips; the corpus has none.", hint="Give audio clips, or another model."
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
class AudioTask:
    """Base of the tasks that read audio clips; the length of a row counts the frames of its spectrogram."""

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
        """Return spectrograms (B, frames, bins), masked at random and normalized, and which frames are no padding."""
        n_frames = self.count_frames(lengths).astype(np.int64)
        width = records.padded_width(int(n_frames.max()))
        spectrograms = np.zeros((lengths.size, width, self.mel.bins), np.float32)
        purposes = (TIME_WIDTH, TIME_START, FREQUENCY_WIDTH, FREQUENCY_START)
        keys = {purpose: derive_sample_keys(self.seed, records, purpose) for purpose in purposes}
        start = 0
        for row, length in enumerate(lengths.tolist()):
            if not length:  # an empty batch, which keeps ranks in step
                continue
            values = normalize(log_mel(_to_samples(samples[start : start + length]), self.mel), self.mel)
            if self.augmentation is not None:
                mask_spectrogram(values, self.augmentation, {purpose: keys[purpose][row : row + 1] for purpose in keys})
            spectrograms[row, : len(values)] = values
            start += length
        return spectrograms, range_mask(0, n_frames, width)


@dataclass(frozen=True)
class ClassifyAudio(AudioTask):
    """Audio classification: one label per audio clip."""

    needs = ("audio",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Count the frames of each audio clip."""
        return self.count_frames(lengths[:1])

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch with one label per audio clip."""
        audio, valid = self.make_spectrograms(records.tokens, records.lengths[0], records)
        labels = np.where(records.labels < 0, IGNORE_INDEX, records.labels)
        return BatchArrays(labels, audio=audio, source_valid=valid)


@dataclass(frozen=True)
class Transcribe(AudioTask):
    """Transcription by teacher forcing: spectrogram; [bos] + prompt + text -> text + [eos]."""

    specials: SpecialIds | None = None
    prompt: tuple[int, ...] = ()
    """Tokens that the decoder reads between bos and the text."""
    needs = ("audio", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Count the frames of each audio clip, and the tokens of each text with prompt and eos."""
        return np.stack((self.count_frames(lengths[0]), lengths[1] + 1 + len(self.prompt)))

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of audio clips and their texts."""
        assert self.specials is not None  # noqa: S101 - it has a default because those of the base class have one
        is_audio = select_first_stream(records.lengths)
        audio, valid = self.make_spectrograms(records.tokens[is_audio], records.lengths[0], records)
        labels, target = shift_target(records, records.tokens[~is_audio], self.specials, self.prompt)
        return BatchArrays(labels, audio=audio, source_valid=valid, target=target)


def _to_samples(tokens: NDArray[np.integer]) -> NDArray[np.int16]:
    """Return stored values as samples: 16 bits with a sign."""
    return tokens.astype(np.uint16).view(np.int16)
