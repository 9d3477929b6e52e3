"""Recipes that tune a model of audio."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.sources import AudioConfig, LinesConfig
from regard.store.model_folder import read_model
from regard.training.recipes.configure import configure
from regard.training.run import fit
from tests.commands import run_command
from tests.training.runs import make_small_run, write_corpus


def test_a_model_of_audio_is_tuned_to_other_labels(tmp_path: Path) -> None:
    files, parent, out = write_corpus(tmp_path, 60), tmp_path / "parent", tmp_path / "tuned"
    fit(make_small_run("audio", files, {"train.steps": 1}), parent)
    table = tmp_path / "other.tsv"
    rows = [line.split("\t") for line in Path(files["speech.tsv"]).read_text().splitlines()]
    table.write_text("file\tlabel\n" + "".join(f"{file}\t{text[0]}\n" for file, text in rows))
    result = run_command("tune", str(parent), "--audio", str(table), "--out", str(out), "--steps", "2", "--explain")
    assert result.code == 0, result.errors
    assert "Head: a new one for the 2 labels" in result.output
    tuned, before = (read_model(folder).settings for folder in (out, parent))
    assert tuned.head.labels == ("h", "l")  # type: ignore[union-attr]
    assert tuned.source == before.source, "mean and deviation of the parent"  # type: ignore[union-attr]
    with pytest.raises(RegardError, match=r"The model reads audio, but this corpus contains text.*"):
        configure(LinesConfig(source=files["all.en"]), parent=parent)
    with pytest.raises(RegardError, match="this corpus contains audio clips with texts"):
        configure(AudioConfig(path=files["speech.tsv"], second="text"), parent=parent)
