"""Sounds as model input: files, arrays and examples become padded batches of spectrograms."""

from collections.abc import Sequence
from os import PathLike, fspath

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.config.model import MelConfig
from regard.data.example import CorpusError, Sound
from regard.data.mel import log_mel, normalise
from regard.data.readers.audio import read_sound

AnySound = str | PathLike[str] | Sound | NDArray[np.int16]  # a file, an example's sound, or samples
Spectrogram = NDArray[np.float32]  # (frames, bins), normalized


def load_spectrogram(sound: AnySound, settings: MelConfig) -> Spectrogram:
    """Return the normalized spectrogram of a sound.

    Raises:
        CorpusError: The file cannot be read, or has another sample rate than the model.
        RegardError: The array does not hold samples of 16 bits.
    """
    if isinstance(sound, np.ndarray):
        if sound.dtype != np.int16 or sound.ndim != 1 or not sound.size:
            what = f"An array of shape {sound.shape} and type {sound.dtype} is no sound."
            raise RegardError(what, fix="Give samples of 16 bits, one after another.")
        samples = sound
    else:
        where = None if isinstance(sound, Sound) else fspath(sound)
        sound = read_sound(where) if where is not None else sound
        assert isinstance(sound, Sound)  # noqa: S101 - the file was read
        check_rate(sound, settings, where)
        samples = np.frombuffer(sound.samples, "<i2")
    return normalise(log_mel(samples, settings), settings)


def check_rate(sound: Sound, settings: MelConfig, where: str | None = None) -> None:
    """Raise CorpusError if a sound has another sample rate than the model."""
    if settings.rate not in (None, sound.rate):
        what = f"The sound has {sound.rate:,} samples per second; the model reads {settings.rate:,}."
        fix = f"Convert it: `ffmpeg -i IN -ac 1 -ar {settings.rate} -sample_fmt s16 OUT.wav`."
        raise CorpusError(what, where=where, fix=fix)


def as_sounds(sounds: AnySound | Sequence[AnySound]) -> tuple[list[AnySound], bool]:
    """Return a list of sounds, and whether only one was given."""
    if isinstance(sounds, str | PathLike | Sound | np.ndarray):
        return [sounds], True
    return list(sounds), False


def pad_spectrograms(spectrograms: Sequence[Spectrogram], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Return a batch (B, frames, bins), and its padding mask (B, frames); None if there is no padding."""
    lengths = [len(spectrogram) for spectrogram in spectrograms]
    batch = np.zeros((len(lengths), max(lengths), spectrograms[0].shape[1]), np.float32)
    for row, spectrogram in zip(batch, spectrograms, strict=True):
        row[: len(spectrogram)] = spectrogram
    valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.from_numpy(batch).to(device), None if bool(valid.all()) else valid.to(device)
