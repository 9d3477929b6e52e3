"""Tables of `regard evaluate`."""

from pathlib import Path

import pytest

from regard.cli import evaluation_tables
from tests.commands import run_command


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


def test_labels_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    evaluation_tables._print_table("matrix", ("", "[neg]", "[/b]"), [("[neg]", "1", "2"), ("[/b]", "3", "4")])
    header = next(line for line in capsys.readouterr().out.splitlines() if "[neg]" in line)
    assert header.split() == ["[neg]", "[/b]"]
