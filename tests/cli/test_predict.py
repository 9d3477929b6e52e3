"""`regard predict`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import regard
from regard.base.progress import Advance
from regard.tasks.text_classification import Classifier
from regard.tasks.translation.translator import Translator
from tests.commands import run_command


def test_predict_command_prints_n_best_labels_to_a_file(trained_encoders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("good dog 7\nbad cat\n")
    files = ("--input", str(tmp_path / "texts"), "--output", str(tmp_path / "labels"))
    done = run_command("predict", str(trained_encoders["text_classification"]), *files, "--n-best", "2")
    assert (done.code, done.output, done.errors) == (0, "", "")
    rows = [line.split("\t") for line in (tmp_path / "labels").read_text().splitlines()]
    assert [(label, text) for label, _, text in rows] == [
        ("yes", "good dog 7"), ("no", "good dog 7"), ("no", "bad cat"), ("yes", "bad cat"),
    ]  # fmt: skip
    assert sum(float(probability.rstrip("%")) for _, probability, _ in rows[:2]) == pytest.approx(100, abs=0.11)
    assert (
        "one tag per word"
        in run_command("predict", str(trained_encoders["tagging"]), "the dog", "--n-best", "2").errors
    )


@pytest.mark.parametrize(
    ("task", "option", "message"),
    [
        ("text_classification", ("--gap", "_"), "A classification or tagging model does not support --gap"),
        ("masked_lm", ("--beam", "2"), "A masked language model does not support --beam"),
        ("masked_lm", ("--pair-text", "a"), "A masked language model does not support --pair"),
        ("tagging", ("--max-new-tokens", "2"), "does not support --max-new-tokens"),
    ],
)
def test_predict_command_refuses_an_option_that_the_model_lacks(
    trained_encoders: dict[str, Path], task: str, option: tuple[str, str], message: str
) -> None:
    done = run_command("predict", str(trained_encoders[task]), "the ___ dog", *option)
    assert done.code == 1
    assert message in done.errors


@pytest.mark.parametrize("task", ["masked_lm", "text_classification", "tagging"])
def test_predict_command_advances_to_the_number_of_texts(
    trained_encoders: dict[str, Path], task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    shown: list[tuple[str, int | None]] = []

    @contextmanager
    def show_progress(stage: str, total: int | None) -> Iterator[Advance]:
        shown.append((stage, total))
        yield counts.append

    monkeypatch.setattr("regard.cli.predict.show_progress", show_progress)
    (tmp_path / "texts").write_text("the ___\na ___ cat\nthe dog ___ a cat\n")
    assert run_command("predict", str(trained_encoders[task]), "--input", str(tmp_path / "texts")).code == 0
    assert shown == [("predicting", 3)]
    assert sum(counts) == 3


def test_predict_command_runs_each_task(trained_encoders: dict[str, Path], tmp_path: Path) -> None:
    filled = run_command("predict", str(trained_encoders["masked_lm"]), "red dog ___ blue cat", "--n-best", "2")
    assert filled.code == 0, filled.errors
    assert filled.output.split("\n")[0] == "red dog sees blue cat"
    assert filled.output.split("\n")[1].startswith("  sees ")
    labeled = run_command("predict", str(trained_encoders["text_classification"]), "good dog 7", "--json")
    assert json.loads(labeled.output)["label"] == "yes"
    classifier = regard.load(trained_encoders["text_classification"])
    assert isinstance(classifier, Classifier)
    (beside,) = classifier.classify(["good dog 7"], ["bad cat"])
    paired = run_command(
        "predict", str(trained_encoders["text_classification"]), "good dog 7", "--pair-text", "bad cat", "--json"
    )
    assert json.loads(paired.output)["probability"] == pytest.approx(beside.probability)
    (tmp_path / "beside.txt").write_text("bad cat\n")
    by_file = run_command(
        "predict",
        str(trained_encoders["text_classification"]),
        "good dog 7",
        "--pair",
        str(tmp_path / "beside.txt"),
        "--json",
    )
    assert by_file == paired
    assert (
        "does not support a second text"
        in run_command("predict", str(trained_encoders["tagging"]), "the dog", "--pair-text", "a").errors
    )
    tagged = run_command("predict", str(trained_encoders["tagging"]), "the dog sees")
    assert tagged.output == "the/D dog/N sees/V\n"
    wrong = run_command("translate", str(trained_encoders["tagging"]), "the dog")
    assert wrong.code == 1
    assert "regard predict" in wrong.errors
    assert Translator.__name__ not in wrong.errors
