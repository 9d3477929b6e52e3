"""Log-mel spectrograms equal those of Whisper's feature extractor and of librosa."""

from typing import Any

import numpy as np
import pytest

from regard.config.inputs import MelConfig
from regard.data.mel import count_frames, log_mel, mel_filters, normalize


@pytest.mark.parametrize(("bins", "samples"), [(80, 37_777), (128, 16_000), (80, 401)])
def test_whisper_computes_the_same(bins: int, samples: int) -> None:
    from transformers import WhisperFeatureExtractor  # slow import

    rng = np.random.default_rng(1)
    times = np.arange(samples)
    loud = 3000 * np.sin(times / 20) * (1 + np.sin(times / 3000)) + rng.normal(0, 50, samples)
    clip = loud.astype(np.int16)
    extract = WhisperFeatureExtractor(feature_size=bins)
    expected = extract(clip / 32768, sampling_rate=16000, padding="longest", return_tensors="np").input_features[0].T
    actual = log_mel(clip, MelConfig(bins=bins, rate=16000))
    assert actual.shape == expected.shape == (samples // 160, bins)
    assert np.abs(actual - expected).max() < 1e-4
    assert actual.std() > 0.1, "the comparison is of something"


@pytest.mark.parametrize(("rate", "bins"), [(16_000, 80), (8_000, 40)])
def test_librosa_computes_the_same(rate: int, bins: int) -> None:
    librosa: Any = pytest.importorskip("librosa")
    mel, times = MelConfig(bins=bins, rate=rate), np.arange(rate)
    loud = 3000 * np.sin(times / 20) + np.random.default_rng(1).normal(0, 50, rate)
    clip = loud.astype(np.int16)
    sizes = {"n_fft": mel.window_samples, "hop_length": mel.hop_samples}
    filters = librosa.filters.mel(sr=rate, n_fft=mel.window_samples, n_mels=bins, dtype=np.float64)
    assert np.abs(mel_filters(rate, mel.window_samples, bins) - filters.T).max() < 1e-12
    power = np.abs(librosa.stft(clip / 32768, **sizes, pad_mode="reflect")) ** 2
    values = np.log10(np.maximum(filters @ power, 1e-10)).T[: rate // mel.hop_samples]
    expected = (np.maximum(values, values.max() - 8) + 4) / 4
    assert np.abs(log_mel(clip, mel) - expected).max() < 1e-6
    assert expected.std() > 0.1, "the comparison is of something"


def test_a_tone_is_in_its_bin() -> None:
    mel = MelConfig(bins=40, rate=8000)
    assert (mel.window_samples, mel.hop_samples) == (200, 80)
    tone = (10_000 * np.sin(2 * np.pi * 1000 * np.arange(8000) / 8000)).astype(np.int16)
    spectrogram = log_mel(tone, mel)
    filters = mel_filters(8000, 200, 40)
    centers = np.linspace(0, 4000, 101)[filters.argmax(axis=0)]
    assert spectrogram.shape == (100, 40)
    assert abs(centers[spectrogram[50].argmax()] - 1000) <= 80
    assert (filters.sum(axis=0) > 0).all(), "no bin is empty"


def test_short_and_silent_audio_have_a_spectrogram() -> None:
    mel = MelConfig(bins=8, rate=8000)
    for samples in (1, 79, 80, 159, 160):
        frames = log_mel(np.ones(samples, np.int16), mel)
        assert frames.shape == (int(count_frames(np.array(samples), mel)), 8)
        assert np.isfinite(frames).all()
    assert (log_mel(np.zeros(800, np.int16), mel) == np.float32(-1.5)).all(), "log10(1e-10), in Whisper's scale"
    assert count_frames(np.array([0, 1, 160, 239]), mel).tolist() == [1, 1, 2, 2]


def test_silence_pads_an_audio_clip() -> None:
    mel = MelConfig(bins=8, rate=8000, pad_to=50)
    clip = np.random.default_rng(1).normal(0, 3000, 1234).astype(np.int16)
    padded = np.concatenate((clip, np.zeros(50 * 80 - 1234, np.int16)))
    assert np.array_equal(log_mel(clip, mel), log_mel(padded, MelConfig(bins=8, rate=8000)))
    assert count_frames(np.array([1, 4000, 8000]), mel).tolist() == [50, 50, 100], "a longer audio clip stays longer"
    assert log_mel(np.ones(8000, np.int16), mel).shape == (100, 8)


def test_normalisation_is_by_bin() -> None:
    values = np.array([[1.0, 5.0], [3.0, 5.0]], np.float32)
    mel = MelConfig(bins=2, mean=(2.0, 5.0), std=(0.5, 1.0))
    assert normalize(values, mel).tolist() == [[-2.0, 0.0], [2.0, 0.0]]
    assert normalize(values, MelConfig(bins=2)).tolist() == values.tolist()
