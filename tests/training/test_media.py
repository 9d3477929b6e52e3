"""What holds for runs on images and on audio alike: resuming, prepared shards and leaks."""

from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.config.codec import MODEL_FILES, RUN_FILES
from regard.store.model_folder import read_model
from regard.training.run import fit, resume
from tests.commands import run_command
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus, write_folders


@pytest.mark.parametrize(
    ("task", "source", "card", "error"),
    [
        ("images", {"kind": "patches", "size": (8, 8)}, "images of 8 x 8 pixels, 1 channel", "has no tokenizer"),
        (
            "audio",
            {"kind": "mel", "rate": 8000},
            "audio clips of 8,000 samples per second",
            "This model reads audio and has no tokenizer",
        ),
    ],
)
def test_classifier_run_killed_and_resumed_equals_whole_run(
    task: str, source: dict[str, Any], card: str, error: str, tmp_path: Path
) -> None:
    run = make_small_run(task, write_corpus(tmp_path / "corpus"))
    finished = fit(run, tmp_path / "whole")
    fit(run, tmp_path / "parts", pause_at=7)
    resume(tmp_path / "parts")
    assert compute_fingerprints(tmp_path / "parts") == compute_fingerprints(tmp_path / "whole")
    assert finished.best_scores["accuracy"] > 0.9, "bright above or below, and low or high tones, are easy to tell"
    model = MODEL_FILES.load(tmp_path / "whole" / "best" / "model.toml")
    assert model.family == "encoder_only"
    assert model.source.model_dump(include=set(source)) == source
    assert not list((tmp_path / "whole" / "best").glob("tokenizer*"))
    assert f"input: {card}" in (tmp_path / "whole" / "best" / "README.md").read_text()
    with pytest.raises(RegardError, match=error):
        _ = read_model(tmp_path / "whole").tokenizers


@pytest.mark.parametrize(
    ("task", "missing_tokenizer"),
    [
        ("images", ""),
        ("audio", ""),
        ("pixels", "pixel models need the codebook"),
        ("captioning", "--tokenizer is missing"),
    ],
)
def test_run_on_prepared_shards_trains_the_same_model(task: str, missing_tokenizer: str, tmp_path: Path) -> None:
    run = make_small_run(task, write_corpus(tmp_path / "corpus"), {"train.steps": 3 if task == "pixels" else 6})
    fit(run, tmp_path / "whole")
    RUN_FILES.save(run, tmp_path / "run.toml")
    arguments = ["prepare", str(tmp_path / "run.toml"), str(tmp_path / "shards")]
    if missing_tokenizer:
        assert missing_tokenizer in run_command(*arguments).errors
        arguments += ["--tokenizer", str(tmp_path / "whole" / "best")]
    result = run_command(*arguments)
    assert result.code == 0, result.errors
    prepared = RUN_FILES.change(run, {"data.prepared": str(tmp_path / "shards"), "data.held_out": 0.0})
    fit(prepared, tmp_path / "prepared")
    whole, same = ((tmp_path / name / "best" / "model.safetensors").read_bytes() for name in ("whole", "prepared"))
    assert whole == same


@pytest.mark.parametrize(("kind", "count"), [("images", 80), ("audio", 60)])
def test_validation_files_in_the_training_data_are_a_leak(kind: str, count: int, tmp_path: Path) -> None:
    files = str(write_folders(tmp_path, count)) if kind == "images" else write_corpus(tmp_path, count)[kind]
    result = run_command("train", f"--{kind}", files, "--validation", files, "--out", str(tmp_path / "run"))
    assert result.code == 1
    noun = "images" if kind == "images" else "audio clips"
    leak = f"Leakage: {count} of the {count} validation {noun} are also in the training data"
    assert leak in " ".join(result.errors.split())
