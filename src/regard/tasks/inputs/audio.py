"""Audio clips as model input: converts files, arrays and examples to padded batches of spectrograms."""

from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.limits import SAMPLES
from regard.config.inputs import MEL_HOP, MelConfig
from regard.data.example import AudioClip, CorpusError
from regard.data.mel import count_frames, log_mel, normalize
from regard.data.readers.audio import decode_audio, load_audio
from regard.tasks.encoding import batch_by_length
from regard.tasks.inputs.adapter import InputBatch, MediaInput
from regard.tasks.replay import DrawnInput

AnyAudio = str | PathLike[str] | AudioClip | NDArray[np.int16]  # a file, an example's audio clip, or samples
Spectrogram = NDArray[np.float32]  # (frames, bins), normalized
BATCH_FRAMES = 8192  # padding and beams included
CHUNK_AUDIO = 512  # audio clips that are loaded and sorted by length at a time


class AudioInput(MediaInput[AnyAudio, AudioClip]):
    """Audio clips at the training sample rate, as log-mel spectrograms."""

    plural = "audio clips"
    config_class = MelConfig
    config: MelConfig

    @property
    def summary(self) -> str:
        """The sample rate."""
        return f"audio clips of {self.config.rate or 'any number of'} samples per second"

    def describe(self) -> dict[str, Any]:
        """Return the sample rate."""
        return {"kind": "audio", "rate": self.config.rate}

    def samples(self) -> list[AnyAudio]:
        """Return a quarter of a second of silence."""
        return [np.zeros(max(1, (self.config.rate or 0) // 4), np.int16)]

    def decode(self, content: bytes, location: str, *, max_pixels: int, max_vectors: int) -> AudioClip:  # noqa: ARG002
        """Decode a .wav or .flac file that is not longer than the model's maximum."""
        vectors = max_vectors if self.max_positions is None else min(max_vectors, self.max_positions)
        max_samples = min(SAMPLES, vectors * self.config.frames * self.config.hop_samples)
        clip = decode_audio(content, location, max_samples=max_samples)
        self._check_rate(clip, location)
        if (vectors := self.count_vectors(clip)) > max_vectors:
            message = f"The model pads every audio clip to {vectors:,} vectors; the server allows {max_vectors:,}."
            raise RegardError(message, hint="Raise the limit `tokens` of the server.")
        return clip

    def load(self, item: AnyAudio) -> Spectrogram:
        """Return the normalized spectrogram (frames, bins) of an audio clip.

        Raises:
            CorpusError: The file cannot be read, or its sample rate differs from the model's.
            RegardError: The array does not contain 16-bit samples, or the audio clip is too long for the model.
        """
        spectrogram = normalize(log_mel(self._read_samples(item), self.config), self.config)
        if self.max_positions is not None and self.count_vectors(spectrogram) > self.max_positions:
            seconds, longest = len(spectrogram) * MEL_HOP, self.max_positions * self.config.vector_seconds
            message = f"The audio clip has {seconds:.1f} seconds; the model reads at most {longest:.1f}."
            raise RegardError(message, hint="Cut it into shorter audio clips.")
        return spectrogram

    def batches(self, items: Sequence[AnyAudio], rows_per_item: int = 1) -> Iterator[InputBatch]:
        """Yield audio clips of similar length, longest first within each chunk."""
        for start in range(0, len(items), CHUNK_AUDIO):
            chunk = [self.load(clip) for clip in items[start : start + CHUNK_AUDIO]]
            for indices in batch_by_length([len(spectrogram) for spectrogram in chunk], BATCH_FRAMES, rows_per_item):
                yield InputBatch([start + index for index in indices], [chunk[index] for index in indices])

    def stack(self, loaded: Sequence[Spectrogram], device: torch.device) -> tuple[Tensor, Tensor | None]:
        """Return a batch (B, frames, bins), and its padding mask (B, frames); None if there is no padding."""
        lengths = [len(spectrogram) for spectrogram in loaded]
        batch = np.zeros((len(lengths), max(lengths), loaded[0].shape[1]), np.float32)
        for row, spectrogram in zip(batch, loaded, strict=True):
            row[: len(spectrogram)] = spectrogram
        valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        return torch.from_numpy(batch).to(device), None if bool(valid.all()) else valid.to(device)

    def measure(self, media: AudioClip | Spectrogram) -> int:
        """Return the number of frames."""
        return int(count_frames(np.array(len(media)), self.config)) if isinstance(media, AudioClip) else len(media)

    def count_vectors(self, media: AudioClip | Spectrogram) -> int:
        """Return the number of vectors of an audio clip."""
        return self.config.count_vectors(self.measure(media))

    def name_vectors(self, loaded: Spectrogram) -> list[str]:
        """Return the time of each vector in seconds."""
        return [f"{number * self.config.vector_seconds:.2f}" for number in range(self.count_vectors(loaded))]

    def draw(self, loaded: Spectrogram, item: AnyAudio) -> DrawnInput:
        """Return gray pixels (bins, frames, 1), high frequencies on top; a cell covers the frames of a vector."""
        values = loaded.astype(np.float64)
        if self.config.std:
            values = values * np.array(self.config.std)
        if self.config.mean:
            values = values + np.array(self.config.mean)
        low, high = values.min(), values.max()
        levels = np.rint((values - low) / max(high - low, 1e-9) * 255).astype(np.uint8)  # (frames, bins)
        names = [f"{name} s" for name in self.name_vectors(loaded)]
        return DrawnInput(
            "spectrogram",
            levels.T[::-1, :, None],
            grid=(1, len(names)),
            cell=(self.config.bins, self.config.frames),
            names=names,
            is_ordered=True,
            seconds=self.config.vector_seconds,
            rate=self.config.rate or 0,
            samples=self._read_samples(item),
        )

    def _read_samples(self, item: AnyAudio) -> NDArray[np.int16]:
        if isinstance(item, np.ndarray):
            if item.dtype != np.int16 or item.ndim != 1 or not item.size:
                message = f"An array of shape {item.shape} and type {item.dtype} is not an audio clip."
                raise RegardError(message, hint="Give a one-dimensional array of 16-bit samples.")
            return item
        location = None if isinstance(item, AudioClip) else fspath(item)
        clip = item if isinstance(item, AudioClip) else load_audio(fspath(item))
        self._check_rate(clip, location)
        return np.frombuffer(clip.samples, "<i2")

    def _check_rate(self, clip: AudioClip, location: str | None) -> None:
        if self.config.rate not in (None, clip.rate):
            message = f"The audio clip has {clip.rate:,} samples per second; the model reads {self.config.rate:,}."
            hint = f"Convert it: `ffmpeg -i IN -ac 1 -ar {self.config.rate} -sample_fmt s16 OUT.wav`."
            raise CorpusError(message, location=location, hint=hint)
