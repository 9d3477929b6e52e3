"""Audio clips as model input: files, arrays and examples become padded batches of spectrograms."""

from collections.abc import Sequence
from os import PathLike, fspath

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.config.inputs import MelConfig
from regard.data.example import AudioClip, CorpusError
from regard.data.mel import log_mel, normalize
from regard.data.readers.audio import load_audio

AnyAudio = str | PathLike[str] | AudioClip | NDArray[np.int16]  # a file, an example's audio clip, or samples
Spectrogram = NDArray[np.float32]  # (frames, bins), normalized


def load_spectrogram(clip: AnyAudio, settings: MelConfig) -> Spectrogram:
    """Return the normalized spectrogram of an audio clip.

    Raises:
        CorpusError: The file cannot be read, or has another sample rate than the model.
        RegardError: The array does not hold samples of 16 bits.
    """
    if isinstance(clip, np.ndarray):
        if clip.dtype != np.int16 or clip.ndim != 1 or not clip.size:
            message = f"An array of shape {clip.shape} and type {clip.dtype} is no audio clip."
            raise RegardError(message, hint="Give samples of 16 bits, one after another.")
        samples = clip
    else:
        location = None if isinstance(clip, AudioClip) else fspath(clip)
        clip = load_audio(location) if location is not None else clip
        assert isinstance(clip, AudioClip)  # noqa: S101 - the file was read
        check_rate(clip, settings, location)
        samples = np.frombuffer(clip.samples, "<i2")
    return normalize(log_mel(samples, settings), settings)


def check_rate(clip: AudioClip, settings: MelConfig, location: str | None = None) -> None:
    """Raise CorpusError if an audio clip has another sample rate than the model."""
    if settings.rate not in (None, clip.rate):
        message = f"The audio clip has {clip.rate:,} samples per second; the model reads {settings.rate:,}."
        hint = f"Convert it: `ffmpeg -i IN -ac 1 -ar {settings.rate} -sample_fmt s16 OUT.wav`."
        raise CorpusError(message, location=location, hint=hint)


def as_audio(audio: AnyAudio | Sequence[AnyAudio]) -> tuple[list[AnyAudio], bool]:
    """Return a list of audio clips, and whether only one was given."""
    if isinstance(audio, str | PathLike | AudioClip | np.ndarray):
        return [audio], True
    return list(audio), False


def pad_spectrograms(spectrograms: Sequence[Spectrogram], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Return a batch (B, frames, bins), and its padding mask (B, frames); None if there is no padding."""
    lengths = [len(spectrogram) for spectrogram in spectrograms]
    batch = np.zeros((len(lengths), max(lengths), spectrograms[0].shape[1]), np.float32)
    for row, spectrogram in zip(batch, spectrograms, strict=True):
        row[: len(spectrogram)] = spectrogram
    valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.from_numpy(batch).to(device), None if bool(valid.all()) else valid.to(device)
