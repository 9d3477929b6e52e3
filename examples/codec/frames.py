"""A codebook of mel frames: audio clip -> one code per 10 ms -> sound.

Frames of a log-mel spectrogram become 8-bit levels, and k-means over the frames of training recordings finds the
centers, as `regard.data.codebook` does with colors. A frame is the number of its nearest center. On the way back,
centers are mel frames again, and Griffin-Lim (1984) finds phases that fit their magnitudes.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.config.inputs import MelConfig
from regard.data.k_means import cluster_vectors, find_nearest
from regard.data.mel import FULL_SCALE, log_mel, mel_filters

RATE, BINS = 8000, 40
MEL = MelConfig(bins=BINS, rate=RATE)
LOW, HIGH, LEVELS = -1.5, 2.0, 255  # log-mel values between LOW and HIGH become levels from 0 to LEVELS
PEAK = 0.9  # of full scale, where a generated audio clip would be louder
Samples = NDArray[np.int16]
Codes = NDArray[np.int64]


class FrameCodebook:
    """Centers of mel frames: `encode` finds the nearest, `decode` makes an audio clip of them."""

    def __init__(self, centers: NDArray[np.uint8]) -> None:
        self.centers = centers  # (k, bins)

    @classmethod
    def learn(cls, audio: list[Samples], k: int) -> "FrameCodebook":
        """Learn k centers from the frames of audio clips."""
        frames, counts = np.unique(np.concatenate([to_levels(clip) for clip in audio]), axis=0, return_counts=True)
        return cls(cluster_vectors(frames.astype(np.int64), counts.astype(np.int64), k).astype(np.uint8))

    @classmethod
    def load(cls, path: Path) -> "FrameCodebook":
        """Load the file that `save` wrote."""
        return cls(np.load(path, allow_pickle=False))

    def save(self, path: Path) -> None:
        """Write the centers."""
        np.save(path, self.centers)

    def encode(self, clip: Samples) -> Codes:
        """Return the code of each frame."""
        return find_nearest(to_levels(clip), self.centers)

    def decode(self, codes: Codes) -> NDArray[np.float64]:
        """Return the log-mel frames (frames, bins) of codes."""
        return LOW + self.centers[codes].astype(np.float64) * ((HIGH - LOW) / LEVELS)


def to_levels(clip: Samples) -> NDArray[np.uint8]:
    """Return the log-mel spectrogram of an audio clip in levels, (frames, bins)."""
    scaled = (log_mel(clip, MEL) - LOW) * (LEVELS / (HIGH - LOW))
    return np.rint(np.clip(scaled, 0, LEVELS)).astype(np.uint8)


def synthesize(frames: NDArray[np.float64], iterations: int = 32) -> Samples:
    """Return samples whose log-mel frames are near the given ones (Griffin and Lim 1984).

    Args:
        frames: (frames, bins).
        iterations: How often phases are computed anew from the samples.
    """
    size, hop = MEL.window_samples, MEL.hop_samples
    magnitudes = np.sqrt(invert_filters(10 ** (4 * frames - 4)))  # (frames, size / 2 + 1)
    window = np.hanning(size + 1)[:-1]
    phases = np.exp(2j * np.pi * np.random.default_rng(1).random(magnitudes.shape))
    samples = np.zeros(0)
    for _ in range(iterations):
        samples = overlap_add(np.fft.irfft(magnitudes * phases, size) * window, hop, window)
        windows = np.lib.stride_tricks.sliding_window_view(samples, size)[::hop][: len(frames)]
        spectrum = np.fft.rfft(windows * window)
        phases = spectrum / np.maximum(np.abs(spectrum), 1e-12)
    samples = samples[size // 2 : size // 2 + len(frames) * hop]  # `log_mel` adds half a window before the audio clip
    samples *= min(1.0, PEAK / max(float(np.abs(samples).max()), 1e-12))
    return np.rint(samples * FULL_SCALE).astype(np.int16)


def invert_filters(power: NDArray[np.float64], iterations: int = 50) -> NDArray[np.float64]:
    """Return the power of every frequency (frames, size / 2 + 1) that gives the power of mel bins, none negative.

    Multiplicative steps (Lee and Seung 2001) of the least squares.
    """
    filters = mel_filters(RATE, MEL.window_samples, BINS)
    spectrum = np.full((len(power), len(filters)), power.mean() / filters.sum(axis=0).mean())
    target = power @ filters.T
    for _ in range(iterations):
        spectrum *= target / np.maximum(spectrum @ filters @ filters.T, 1e-20)
    return spectrum


def overlap_add(windows: NDArray[np.float64], hop: int, window: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the signal of overlapping windows with the least squared error: their sum over that of squared weights."""
    size = windows.shape[1]
    total = np.zeros((len(windows) - 1) * hop + size)
    weights = np.zeros_like(total)
    for number, values in enumerate(windows):
        total[number * hop : number * hop + size] += values
        weights[number * hop : number * hop + size] += window**2
    return total / np.maximum(weights, 1e-3)
