"""`regard evaluate` of classifiers, taggers and masked models, and the commands that training recommends."""

import json
import math
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.base.errors import RegardError
from regard.cli import evaluation_tables
from regard.cli.train import _print_next_steps
from regard.measure.label_scores import compare_labels, score_labels
from regard.pipeline.classifier import Classifier
from regard.pipeline.encoding import add_special_tokens
from regard.pipeline.fill_mask import FillMask
from regard.pipeline.pseudo_likelihood import pseudo_likelihood
from regard.training.events import Finished
from tests.commands import run_command

TABLE = "good dog\tyes\nbad cat\tyes\ngood dog 3\tyes\nbad cat 4\tno\n"
CONLL = "the\tD\ndog\tV\nsees\tV\n\na\tD\ntree\tN\n"


def evaluate_json(*arguments: str | Path) -> dict[str, Any]:
    done = run_command("evaluate", *map(str, arguments), "--json")
    assert done.code == 0, done.errors
    evaluation = json.loads(done.output)
    assert isinstance(evaluation, dict)
    return evaluation


def test_a_classifier_is_measured(models: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(TABLE)
    evaluation = evaluate_json(
        models["classify"], "--data", tmp_path / "test.tsv", "--output", tmp_path / "labels", "--samples", "50"
    )
    assert (tmp_path / "labels").read_text() == "yes\nno\nyes\nno\n"
    report = score_labels([("yes",), ("no",), ("yes",), ("no",)], [("yes",)] * 3 + [("no",)], 50)
    assert evaluation["scores"]["accuracy"] == {"value": 75.0, "signature": "accuracy|labels:2|n:4"}
    assert evaluation["scores"]["matthews"]["value"] == report.scores["matthews"].value
    assert evaluation["intervals"]["macro_f1"] == list(report.intervals["macro_f1"])
    assert evaluation["matrix"] == {"labels": ["no", "yes"], "counts": [[1, 0], [1, 2]]}
    assert evaluation["confusions"] == [{"expected": "yes", "predicted": "no", "count": 1}]
    shown = run_command("evaluate", str(models["classify"]), "--data", str(tmp_path / "test.tsv"))
    assert "always predicting 'yes' has an accuracy of 75.00" in shown.output
    assert "confusion matrix" in shown.output


def test_json_lines_are_read_too(models: dict[str, Path], tmp_path: Path) -> None:
    rows = [dict(zip(("text", "label"), line.split("\t"), strict=True)) for line in TABLE.splitlines()]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluation = evaluate_json(models["classify"], "--data", tmp_path / "test.jsonl", "--samples", "2")
    assert evaluation["scores"]["accuracy"]["value"] == 75.0


def test_a_tagger_is_measured_and_compared(models: dict[str, Path], tmp_path: Path) -> None:
    for name in ("test.conll", "test.gold"):  # the model's task says what the second is
        (tmp_path / name).write_text(CONLL)
        evaluation = evaluate_json(models["tag"], "--data", tmp_path / name, "--samples", "20")
        assert (evaluation["texts"], evaluation["labels"]) == (2, 5)
        assert evaluation["scores"]["accuracy"]["value"] == 80.0
        assert "entity_f1" not in evaluation["scores"]
    (tmp_path / "theirs").write_text("D V V\nD D\n")
    data = ("--data", tmp_path / "test.conll", "--samples", "20")
    compared = evaluate_json(models["tag"], *data, "--other-output", tmp_path / "theirs")
    expected = [("D", "V", "V"), ("D", "N")]
    ours, theirs = [("D", "N", "V"), ("D", "N")], [("D", "V", "V"), ("D", "D")]
    assert compared["comparisons"][0]["difference"] == compare_labels(ours, theirs, expected, 20)[0].difference == 0
    alone = evaluate_json("--hypotheses", tmp_path / "theirs", *data)
    assert alone["scores"]["accuracy"]["value"] == 80.0
    itself = evaluate_json(models["tag"], *data, "--other", models["tag"])
    assert [comparison["p"] for comparison in itself["comparisons"]] == [1.0, 1.0, 1.0]


def test_the_columns_of_training_are_those_of_the_test(models: dict[str, Path], tmp_path: Path) -> None:
    """The run read tags from column 2; the last of these four columns holds something else."""
    rows = [line.split("\t") for line in CONLL.split("\n") if line]
    (tmp_path / "test.conll").write_text("".join(f"{word}\t{tag}\t_\tX\n" for word, tag in rows))
    assert evaluate_json(models["tag"], "--data", tmp_path / "test.conll")["scores"]["accuracy"]["value"] == 80.0


def test_fifty_labels_stay_readable(tmp_path: Path) -> None:
    labels = [f"intent {number:02d}" for number in range(50)]
    (tmp_path / "test.tsv").write_text("".join(f"please do {n}\t{label}\n" for n, label in enumerate(labels * 10)))
    predicted = [labels[0] if label == labels[7] else label for label in labels] * 10
    (tmp_path / "theirs").write_text("".join(f"{label}\n" for label in predicted))
    shown = run_command("evaluate", "--hypotheses", str(tmp_path / "theirs"), "--data", str(tmp_path / "test.tsv"))
    assert shown.code == 0, shown.errors
    assert "confusion matrix" not in shown.output
    assert "most frequent of 10 errors" in shown.output
    assert "intent 07  intent 00        10" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("task", "content", "name", "extra", "message"),
    [
        ("classify", CONLL, "test.conll", (), "holds tagged words, and this model's task is 'classify'"),
        ("classify", "one\ntwo\n", "test.txt", (), "holds texts without labels"),
        ("tag", "good\t1\nbad\t2\n", "test.tsv", (), "holds labeled texts, and this model's task is 'tag'"),
        ("classify", "good dog\t1\nbad cat\t2\n", "test.tsv", (), "knows none of the labels of the data: 1, 2"),
        ("classify", TABLE, "test.tsv", ("--into", "de"), "--into is not for labeled data"),
        ("classify", TABLE, "test.tsv", ("--beam", "3"), "--beam is not for labeled data"),
        ("classify", TABLE, "test.tsv", ("--lines",), "--lines needs --text"),
        ("classify", TABLE, "test.tsv", ("--text", "test.tsv"), "cannot be combined"),
        ("classify", "", "test.tsv", (), "empty"),
        ("fill", "good\t1\nbad\t2\n", "test.tsv", (), "holds labeled texts, and this model's task is 'fill'"),
    ],
)
def test_data_of_another_kind_is_refused(
    models: dict[str, Path], tmp_path: Path, task: str, content: str, name: str, extra: tuple[str, ...], message: str
) -> None:
    (tmp_path / name).write_text(content)
    options = [str(tmp_path / option) if option == name else option for option in extra]
    done = run_command("evaluate", str(models[task]), "--data", str(tmp_path / name), *options)
    assert done.code == 1
    assert message in done.errors
    assert "fix:" in done.errors


def test_labels_that_the_model_never_saw_are_reported(models: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(TABLE + "good dog\tmaybe\n")
    done = run_command("evaluate", str(models["classify"]), "--data", str(tmp_path / "test.tsv"))
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


def test_pseudo_perplexity_masks_every_token_once(models: dict[str, Path], tmp_path: Path) -> None:
    fill_mask = regard.load(models["fill"])
    assert isinstance(fill_mask, FillMask)
    texts = ["red dog sees blue cat", "old house", "a new tree finds red dog"]
    result = pseudo_likelihood(fill_mask, texts, batch_tokens=20)
    tokenizer, total, count = fill_mask.tokenizers.source, 0.0, 0
    for text, logprobs in zip(texts, result.logprobs, strict=True):
        ids = tokenizer.encode_ids([text])[0]
        assert len(logprobs) == len(ids)
        for position, token in enumerate(ids):
            row = add_special_tokens(tokenizer, [*ids[:position], tokenizer.specials.mask, *ids[position + 1 :]])
            with torch.inference_mode():
                logits = fill_mask.model.eval()(torch.tensor([row]))[0, 1 + position]
            logprob = float(logits.log_softmax(dim=-1)[token])
            assert logprobs[position] == pytest.approx(logprob, abs=1e-5)
            total, count = total + logprob, count + 1
    assert result.tokens == count
    assert result.pseudo_perplexity == pytest.approx(math.exp(-total / count), rel=1e-4)
    (tmp_path / "text").write_text("\n".join(texts) + "\n")
    evaluation = evaluate_json(models["fill"], "--text", tmp_path / "text", "--lines")
    assert evaluation["pseudo_likelihood"]["pseudo_perplexity"] == pytest.approx(result.pseudo_perplexity, rel=1e-4)
    shown = run_command("evaluate", str(models["fill"]), "--text", str(tmp_path / "text"), "--window", "4")
    assert "pseudo-perplexity" in shown.output
    with pytest.raises(RegardError, match="A window cannot have 1 token"):
        pseudo_likelihood(fill_mask, texts, window=1)


@pytest.mark.parametrize(("task", "data"), [("fill", "the dog\n"), ("classify", TABLE), ("tag", CONLL)])
def test_the_commands_printed_after_training_work(
    models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], task: str, data: str
) -> None:
    test_file = tmp_path / {"fill": "test.txt", "classify": "test.tsv", "tag": "test.conll"}[task]
    test_file.write_text(data)
    _print_next_steps(Finished(60, "finished", models[task]))
    lines = capsys.readouterr().out.splitlines()
    commands = [line.partition(": regard ")[2] for line in lines if line.startswith(("Use it:", "Measure it:"))]
    assert len(commands) == 2
    for command in commands:
        done = run_command(*(str(test_file) if part == "TEST" else part for part in shlex.split(command)))
        assert done.code == 0, done.errors
        assert done.output


def test_a_classifier_and_a_tagger_stay_what_they_are(models: dict[str, Path]) -> None:
    assert isinstance(regard.load(models["classify"]), Classifier)
    assert isinstance(regard.load(models["tag"]), Classifier)


def test_labels_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    evaluation_tables._print_table("matrix", ("", "[neg]", "[/b]"), [("[neg]", "1", "2"), ("[/b]", "3", "4")])
    header = next(line for line in capsys.readouterr().out.splitlines() if "[neg]" in line)
    assert header.split() == ["[neg]", "[/b]"]
