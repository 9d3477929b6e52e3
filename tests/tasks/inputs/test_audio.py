"""Audio clips as model input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.base.errors import RegardError
from regard.config.inputs import MelConfig
from regard.data.example import AudioClip
from regard.tasks.inputs import audio
from regard.tasks.inputs.audio import AudioInput
from regard.tasks.load import load_audio_classifier
from tests.tasks.media_models import RATE, write_audio_model

CPU = torch.device("cpu")


def make_clip(frames: int) -> np.ndarray:
    return np.random.default_rng(frames).normal(0, 3000, frames * RATE // 100).astype(np.int16)


@pytest.fixture
def audio_input() -> AudioInput:
    return AudioInput(MelConfig(bins=8, rate=RATE), max_positions=20)


def test_batches_hold_clips_of_similar_length(audio_input: AudioInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audio, "BATCH_FRAMES", 20)
    monkeypatch.setattr(audio, "CHUNK_AUDIO", 4)
    clips = [make_clip(frames) for frames in (3, 9, 4, 9, 20, 1)]
    batches = list(audio_input.batches(clips))
    assert [batch.indices for batch in batches] == [[1, 3], [2, 0], [4], [5]]
    assert [[len(item) for item in batch.loaded] for batch in batches] == [[9, 9], [4, 3], [20], [1]]
    assert [batch.indices for batch in audio_input.batches(clips, 3)] == [[1], [3], [2], [0], [4], [5]]


def test_shorter_clips_are_padded_and_masked(audio_input: AudioInput) -> None:
    source, valid = audio_input.stack([audio_input.load(make_clip(frames)) for frames in (5, 3)], CPU)
    assert source.shape == (2, 5, 8)
    assert valid is not None
    assert valid.tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert not source[1, 3:].any()
    assert audio_input.stack([audio_input.load(make_clip(5))], CPU)[1] is None


def test_decoded_and_loaded_clips_have_equal_lengths(audio_input: AudioInput) -> None:
    samples = make_clip(7)
    clip = AudioClip(RATE, samples.astype("<i2").tobytes())
    assert audio_input.measure(clip) == audio_input.measure(audio_input.load(clip)) == 7
    assert audio_input.count_vectors(clip) == audio_input.count_vectors(audio_input.load(samples)) == 4


def test_clip_with_more_vectors_than_positions_is_refused(audio_input: AudioInput, tmp_path: Path) -> None:
    message = r"The audio clip has 0\.4 seconds; the model reads at most 0\.4"
    assert len(audio_input.load(make_clip(40))) == 40
    with pytest.raises(RegardError, match=message):
        audio_input.load(make_clip(41))
    changes: dict[str, Any] = {"encoder.position": {"kind": "learned", "length": 20}}
    classifier = load_audio_classifier(write_audio_model(tmp_path / "model", **changes))
    with pytest.raises(RegardError, match=message):
        classifier.classify(make_clip(41))


@pytest.mark.parametrize("samples", [np.zeros(9, np.int32), np.zeros((2, 9), np.int16), np.zeros(0, np.int16)])
def test_array_without_samples_of_16_bits_is_refused(audio_input: AudioInput, samples: np.ndarray) -> None:
    with pytest.raises(RegardError, match="is not an audio clip"):
        audio_input.load(samples)


def test_other_sample_rate_is_refused(audio_input: AudioInput) -> None:
    with pytest.raises(RegardError, match="16,000 samples per second; the model reads 8,000"):
        audio_input.load(AudioClip(16_000, bytes(3200)))
