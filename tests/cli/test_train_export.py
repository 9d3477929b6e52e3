"""Exports after training: what is checked before it, and the folder beside the run."""

import json
from pathlib import Path

import pytest

from regard.cli.train_export import check_exports
from regard.cli.train_options import TrainCommandOptions
from regard.config import codec
from regard.store.export_folder import PARITY_FILE
from tests.cli.factories import PAIR_OPTIONS, TINY_OPTIONS, run_train

pytestmark = pytest.mark.usefixtures("corpus")


def test_a_run_exports_its_best_model() -> None:
    limits = ["--steps", "4", "--set=validation.every_steps=4"]
    done = run_train(*PAIR_OPTIONS, "--out", "run", *TINY_OPTIONS, *limits, "--export", "ctranslate2")
    parity = json.loads((Path("run-ctranslate2") / PARITY_FILE).read_text())
    assert parity["passed"] is True
    assert parity["texts_are"] == "validation texts"
    assert parity["bleu"]["change"] == 0
    assert "Exported: run-ctranslate2: CTranslate2, float32" in done.output
    assert codec.RUN_FILES.load(Path("run/run.toml")).export == ("ctranslate2",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--export", "onyx"], "There is no export target 'onyx'"),
        (["--export", "ctranslate2", "--set=model.encoder.window=4"], "encoder.window is not supported"),
        (
            ["--export", "argos", "--languages", "en", "de", "--set=model.encoder.window=4"],
            "argos, which cannot represent the model: encoder.window is not supported",
        ),
        (
            ["--export", "huggingface", '--set=model.encoder.position={kind = "alibi"}'],
            "cannot represent the model: encoder.position is alibi",
        ),
    ],
)
def test_what_cannot_be_exported_is_not_trained(options: list[str], message: str) -> None:
    done = run_train(*PAIR_OPTIONS, "--out", "run", *TINY_OPTIONS, *options, code=1)
    assert message in done.errors.replace("\n", " ")
    assert not Path("run").exists()


def test_a_run_exports_a_package_for_argos() -> None:
    pytest.importorskip("ctranslate2")
    limits = [
        "--steps",
        "2",
        "--set=validation.every_steps=2",
        "--set=tokenizer.vocabulary=400",
        "--languages",
        "en",
        "de",
    ]
    done = run_train(*PAIR_OPTIONS, "--out", "run", *TINY_OPTIONS, *limits, "--export", "argos")
    assert "Exported: run-argos: package for Argos Translate" in done.output


def test_a_foreign_folder_is_never_replaced() -> None:
    Path("run-ctranslate2").mkdir()
    Path("run-ctranslate2/mine.txt").write_text("mine")
    done = run_train(*PAIR_OPTIONS, "--out", "run", *TINY_OPTIONS, "--export", "ctranslate2", code=1)
    assert "The export folder exists already" in done.errors
    assert not Path("run").exists()
    assert Path("run-ctranslate2/mine.txt").read_text() == "mine"


def test_a_missing_package_is_reported_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.cli.train_export.list_missing", lambda _: ["ctranslate2"])
    options = TrainCommandOptions(source=["a.en"], target=["a.de"], out=Path("run"), export=["ctranslate2"])
    with pytest.raises(Exception, match="needs the package 'ctranslate2'"):
        check_exports(options)
