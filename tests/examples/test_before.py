"""`examples/before`: a small form of every part runs, and the bottleneck of one vector shows."""

import sys
from pathlib import Path

import pytest
from examples.before import length, neural_ngram
from examples.before.options import Options
from examples.before.report import Chart, Report, draw, write_report
from examples.before.run import PARTS, run_part

from regard.base.errors import RegardError


def test_attention_copies_what_a_fixed_vector_cannot_hold(tmp_path: Path) -> None:
    results = length.compare(Options(None, tmp_path, small=True))
    attention, fixed = results["attention"][1], results["fixed vector"][1]
    assert min(attention) >= 0.9
    assert fixed[0] >= 0.8  # two symbols fit
    assert fixed[-1] <= 0.5  # eight do not


@pytest.mark.parametrize("part", [part for part in PARTS if part != "length"])
def test_every_part_writes_its_table_and_chart(part: str, tmp_path: Path) -> None:
    report = run_part(part, Options(None, tmp_path, small=True))
    assert all(len(row) == len(report.header) for row in report.rows)
    text = (tmp_path / "RESULTS.md").read_text()
    assert f"## {report.title}" in text
    assert f"({part}.svg)" in text
    svg = (tmp_path / f"{part}.svg").read_text()
    assert svg.count("<polyline") == len(report.chart.lines)


def test_a_neural_ngram_reads_its_whole_context(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text repeats every three characters, and only two characters before decide the next one."""
    (tmp_path / "book.txt").write_text("aab" * 600)
    arguments = ["neural_ngram.py", str(tmp_path / "book.txt"), "--order", "3", "--steps", "60"]
    monkeypatch.setattr(sys, "argv", arguments)
    neural_ngram.main()
    lines = capsys.readouterr().out.splitlines()[1:]
    bits = {line.rsplit(maxsplit=2)[0]: float(line.split()[-2]) for line in lines}
    assert bits["1-grams, counted"] == pytest.approx(0.918, abs=0.01), "the entropy of 2/3 and 1/3"
    assert bits["2-grams, counted"] == pytest.approx(2 / 3, abs=0.02), "after a comes a or b"
    assert max(bits["3-grams, counted"], bits["3-grams, neural"]) < 0.1
    (tmp_path / "book.txt").write_text("short")
    with pytest.raises(RegardError, match="The text has 5 characters"):
        neural_ngram.main()


def test_a_section_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    chart = Chart("x", "y", [1, 10, 100], {"a": [1.0, float("nan"), 3.0], "b": [0.0, 2.0, float("inf")]}, log_x=True)
    for title, part in (("One", "one"), ("Two", "two"), ("Again", "one")):
        write_report(Report(title, "Text.", ["a", "b"], [["c", "1"]], chart), part, tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert [line for line in text.split("\n") if line.startswith("## ")] == ["## Again", "## Two"]
    assert "nan" not in draw(chart)
