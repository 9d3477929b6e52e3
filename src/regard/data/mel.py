"""Log-mel spectrograms, as Whisper computes them (Radford et al. 2022): equal to its feature extractor within 1e-4.

A clip is mirrored at both ends by half a window. Each frame is the power spectrum of one window, weighted by a Hann
window; triangular filters sum it into bins that are evenly spaced on the mel scale of Slaney. The base-10 logarithm is
clamped to at most 8 below the clip's maximum, and (x + 4) / 4 is near 0. Whisper pads every audio clip with silence to
30 seconds first; here `pad_to` does.
"""

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from regard.config.inputs import MelConfig

FULL_SCALE = 32768.0  # of 16-bit samples
FLOOR, RANGE = 1e-10, 8.0  # the smallest power, and the powers of ten below the maximum that are kept
LINEAR_HERTZ, LINEAR_MELS = 1000.0, 15.0  # below this frequency, 200 / 3 hertz are a mel
LOG_MELS = 27.0 / np.log(6.4)  # above it, 27 mels are a factor of 6.4
FloatArray = NDArray[np.float64]


def count_frames(samples: NDArray[np.integer], settings: MelConfig) -> NDArray[np.integer]:
    """Return the number of frames of audio clips, padding with silence included, from their numbers of samples."""
    return np.maximum(samples // settings.hop_samples, settings.pad_to or 1)


def log_mel(samples: NDArray[np.int16], settings: MelConfig) -> NDArray[np.float32]:
    """Return the log-mel spectrogram (frames, bins) of an audio clip of at least one sample."""
    size, hop = settings.window_samples, settings.hop_samples
    n_frames = int(count_frames(np.array(samples.size), settings))
    if settings.pad_to is not None:
        samples = np.pad(samples, (0, max(0, n_frames * hop - samples.size)))  # silence
    padded = np.pad(samples / FULL_SCALE, size // 2, mode="reflect")
    windows = sliding_window_view(padded, size)[::hop][:n_frames]  # (frames, size)
    spectrum = np.fft.rfft(windows * _hann(size), axis=-1)
    power = spectrum.real**2 + spectrum.imag**2  # (frames, size / 2 + 1)
    values = np.log10(np.maximum(power @ mel_filters(settings.rate or 0, size, settings.bins), FLOOR))
    return ((np.maximum(values, values.max() - RANGE) + 4) / 4).astype(np.float32)


def normalize(spectrogram: NDArray[np.float32], settings: MelConfig) -> NDArray[np.float32]:
    """Return a spectrogram minus the mean of each bin and divided by its deviation."""
    result = spectrogram.copy()
    if settings.mean:
        result -= np.array(settings.mean, np.float32)
    if settings.std:
        result /= np.array(settings.std, np.float32)
    return result


@lru_cache(maxsize=8)
def mel_filters(rate: int, size: int, bins: int) -> FloatArray:
    """Return the weights of every frequency in every bin (size / 2 + 1, bins); each triangle has the area 2 / hertz."""
    frequencies = np.linspace(0, rate / 2, size // 2 + 1)[:, None]
    edges = _to_hertz(np.linspace(0.0, float(_to_mels(np.array(rate / 2))), bins + 2))
    low, center, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (frequencies - low) / (center - low), (high - frequencies) / (high - center)
    filters: FloatArray = np.maximum(0, np.minimum(rising, falling)) * 2 / (high - low)
    filters.flags.writeable = False
    return filters


def _to_mels(hertz: FloatArray) -> FloatArray:
    above = LINEAR_MELS + LOG_MELS * np.log(np.maximum(hertz, LINEAR_HERTZ) / LINEAR_HERTZ)
    return np.where(hertz < LINEAR_HERTZ, hertz * LINEAR_MELS / LINEAR_HERTZ, above)


def _to_hertz(mels: FloatArray) -> FloatArray:
    above = LINEAR_HERTZ * np.exp((mels - LINEAR_MELS) / LOG_MELS)
    return np.where(mels < LINEAR_MELS, mels * LINEAR_HERTZ / LINEAR_MELS, above)


@lru_cache(maxsize=8)
def _hann(size: int) -> FloatArray:
    return np.hanning(size + 1)[:-1]
