"""Data of `regard evaluate`: labels and tags of tables, JSON lines and CoNLL files."""

import json
from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardWarning
from regard.measure.label_scores import compare_labels, score_labels
from tests.cli.factories import CONLL, TABLE, evaluate_json
from tests.commands import run_command


def test_a_classifier_is_measured(trained_encoders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(TABLE)
    evaluation = evaluate_json(
        trained_encoders["text_classification"],
        "--data",
        tmp_path / "test.tsv",
        "--output",
        tmp_path / "labels",
        "--samples",
        "50",
    )
    assert (tmp_path / "labels").read_text() == "yes\nno\nyes\nno\n"
    report = score_labels([("yes",), ("no",), ("yes",), ("no",)], [("yes",)] * 3 + [("no",)], 50)
    assert evaluation["scores"]["accuracy"] == {"value": 75.0, "signature": "accuracy|labels:2|n:4"}
    assert evaluation["scores"]["matthews"]["value"] == report.scores["matthews"].value
    assert evaluation["intervals"]["macro_f1"] == list(report.intervals["macro_f1"])
    assert evaluation["matrix"] == {"labels": ["no", "yes"], "counts": [[1, 0], [1, 2]]}
    assert evaluation["confusions"] == [{"expected": "yes", "predicted": "no", "count": 1}]
    data, labels = tmp_path / "test.tsv", tmp_path / "labels"
    from_python = regard.evaluate(
        trained_encoders["text_classification"], data, output=labels, samples=50, progress=False
    )
    assert json.loads(json.dumps(from_python)) == evaluation
    shown = run_command("evaluate", str(trained_encoders["text_classification"]), "--data", str(tmp_path / "test.tsv"))
    assert "always predicting 'yes' has an accuracy of 75.00" in shown.output
    assert "confusion matrix" in shown.output


def test_json_lines_are_read_too(trained_encoders: dict[str, Path], tmp_path: Path) -> None:
    rows = [dict(zip(("text", "label"), line.split("\t"), strict=True)) for line in TABLE.splitlines()]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluation = evaluate_json(
        trained_encoders["text_classification"], "--data", tmp_path / "test.jsonl", "--samples", "2"
    )
    assert evaluation["scores"]["accuracy"]["value"] == 75.0


def test_a_tagger_is_measured_and_compared(trained_encoders: dict[str, Path], tmp_path: Path) -> None:
    for name in ("test.conll", "test.gold"):  # the model's task says what the second is
        (tmp_path / name).write_text(CONLL)
        evaluation = evaluate_json(trained_encoders["tagging"], "--data", tmp_path / name, "--samples", "20")
        assert (evaluation["texts"], evaluation["labels"]) == (2, 5)
        assert evaluation["scores"]["accuracy"]["value"] == 80.0
        assert "entity_f1" not in evaluation["scores"]
    (tmp_path / "theirs").write_text("D V V\nD D\n")
    data = ("--data", tmp_path / "test.conll", "--samples", "20")
    compared = evaluate_json(trained_encoders["tagging"], *data, "--other-output", tmp_path / "theirs")
    expected = [("D", "V", "V"), ("D", "N")]
    ours, theirs = [("D", "N", "V"), ("D", "N")], [("D", "V", "V"), ("D", "D")]
    assert compared["comparisons"][0]["difference"] == compare_labels(ours, theirs, expected, 20)[0].difference == 0
    alone = evaluate_json("--hypotheses", tmp_path / "theirs", *data)
    assert alone["scores"]["accuracy"]["value"] == 80.0
    itself = evaluate_json(trained_encoders["tagging"], *data, "--other", trained_encoders["tagging"])
    assert [comparison["p"] for comparison in itself["comparisons"]] == [1.0, 1.0, 1.0]


def test_the_columns_of_training_are_those_of_the_test(trained_encoders: dict[str, Path], tmp_path: Path) -> None:
    """The run read tags from column 2; the last of these four columns holds something else."""
    rows = [line.split("\t") for line in CONLL.split("\n") if line]
    (tmp_path / "test.conll").write_text("".join(f"{word}\t{tag}\t_\tX\n" for word, tag in rows))
    assert (
        evaluate_json(trained_encoders["tagging"], "--data", tmp_path / "test.conll")["scores"]["accuracy"]["value"]
        == 80.0
    )


@pytest.mark.parametrize(
    ("task", "content", "name", "extra", "message"),
    [
        (
            "text_classification",
            CONLL,
            "test.conll",
            (),
            "contains tagged words, but this model's task is 'text_classification'",
        ),
        ("text_classification", "one\ntwo\n", "test.txt", (), "contains texts without labels"),
        ("tagging", "good\t1\nbad\t2\n", "test.tsv", (), "contains labeled texts, but this model's task is 'tagging'"),
        (
            "text_classification",
            "good dog\t1\nbad cat\t2\n",
            "test.tsv",
            (),
            "All labels of the data are unknown to the model: 1, 2",
        ),
        (
            "text_classification",
            TABLE,
            "test.tsv",
            ("--target-language", "de"),
            "--target-language is not for labeled data",
        ),
        ("text_classification", TABLE, "test.tsv", ("--beam", "3"), "--beam is not for labeled data"),
        ("text_classification", TABLE, "test.tsv", ("--lines",), "--lines needs --text"),
        ("text_classification", TABLE, "test.tsv", ("--text", "test.tsv"), "cannot be combined"),
        ("text_classification", "", "test.tsv", (), "empty"),
        ("masked_lm", "good\t1\nbad\t2\n", "test.tsv", (), "contains labeled texts, but this model's task"),
    ],
)
def test_data_of_another_kind_is_refused(
    trained_encoders: dict[str, Path],
    tmp_path: Path,
    task: str,
    content: str,
    name: str,
    extra: tuple[str, ...],
    message: str,
) -> None:
    (tmp_path / name).write_text(content)
    options = [str(tmp_path / option) if option == name else option for option in extra]
    done = run_command("evaluate", str(trained_encoders[task]), "--data", str(tmp_path / name), *options)
    assert done.code == 1
    assert message in done.errors
    assert "fix:" in done.errors


def test_labels_that_the_model_never_saw_are_reported(trained_encoders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(TABLE + "good dog\tmaybe\n")
    with pytest.warns(RegardWarning, match="1 label of the data unknown to the model: maybe"):
        regard.evaluate(trained_encoders["text_classification"], tmp_path / "test.tsv", samples=2)
    done = run_command("evaluate", str(trained_encoders["text_classification"]), "--data", str(tmp_path / "test.tsv"))
    assert done.code == 0
    assert "1 label of the data unknown to the model: maybe." in done.errors


def test_hypotheses_of_another_length_are_refused(tmp_path: Path) -> None:
    (tmp_path / "test.conll").write_text(CONLL)
    (tmp_path / "theirs").write_text("D N\nD N\n")
    data = ("--data", str(tmp_path / "test.conll"))
    done = run_command("evaluate", "--hypotheses", str(tmp_path / "theirs"), *data)
    assert "Line 1 of --hypotheses has 2 tags for 3 words." in done.errors
    (tmp_path / "theirs").write_text("D N\n")
    done = run_command("evaluate", "--hypotheses", str(tmp_path / "theirs"), *data)
    assert "--hypotheses has 1 line, --data has 2 examples." in done.errors
