"""Recipes for audio."""

from pathlib import Path

import pytest

from regard.base.errors import ConfigError, RegardError
from regard.config.sources import AudioConfig
from regard.tasks.task import find_task
from regard.training.autotune import seconds_per_step
from regard.training.recipes.configure import configure
from tests.training.runs import make_audio_run, write_audio, write_wav


def test_settings_are_chosen_from_the_audio(tmp_path: Path) -> None:
    write_audio(tmp_path, 60)
    source = AudioConfig(path=str(tmp_path / "audio"))
    auto_run = configure(source)
    run = auto_run.run
    assert run.data.train == (source,)
    assert run.data.max_length == 11
    assert run.data.spec_augment is not None
    assert seconds_per_step(run, 8, should_tune=False) > 0, "a synthetic batch has audio clips"
    assert find_task(run.model.task).synthetic_batch(run, 3, 8).source.shape == (3, 8, 40)  # type: ignore[union-attr]
    with pytest.raises(RegardError, match="Preset 'tiny' does not classify audio clips"):
        configure(source, preset="tiny")
    write_wav(tmp_path / "audio" / "low" / "fast.wav", bytes(2000), rate=16000)
    with pytest.raises(RegardError, match="different sample rates: 8,000, 16,000") as caught:
        configure(source)
    assert "fast.wav" in str(caught.value.location)
    assert "(the first of 1)" in str(caught.value.location)
    (tmp_path / "audio" / "low" / "fast.wav").unlink()
    write_wav(tmp_path / "audio" / "no label.wav", bytes(2000))
    with pytest.raises(RegardError, match="1 of 61 audio clips has no label"):
        configure(source)


def test_settings_are_chosen_from_speech(tmp_path: Path) -> None:
    write_audio(tmp_path, 60)
    source = AudioConfig(path=str(tmp_path / "speech.tsv"), second="text")
    run = configure(source).run
    assert run.model.task == "transcription"
    assert run.tokenizer.kind == "character"
    assert run.model.target.vocabulary == len(set("lowhigh")) + 7  # type: ignore[union-attr]
    assert seconds_per_step(run, 8, should_tune=False) > 0
    with pytest.raises(RegardError, match="Preset 'audio-encoder' does not transcribe audio clips"):
        configure(source, preset="audio-encoder")
    with pytest.raises(ConfigError, match=r"tokenizer\.kind: is 'none', but the model writes tokens"):
        make_audio_run(tmp_path / "none", {"tokenizer": {"kind": "none"}}, "transcription")
