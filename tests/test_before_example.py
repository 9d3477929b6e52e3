"""`examples/before`: a small form of every part runs, and the bottleneck of one vector shows."""

from pathlib import Path

import pytest
from examples.before import length
from examples.before.options import Options
from examples.before.report import Chart, Report, draw, write_report
from examples.before.run import PARTS, run_part


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


def test_a_section_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    chart = Chart("x", "y", [1, 10, 100], {"a": [1.0, float("nan"), 3.0], "b": [0.0, 2.0, float("inf")]}, log_x=True)
    for title, part in (("One", "one"), ("Two", "two"), ("Again", "one")):
        write_report(Report(title, "Text.", ["a", "b"], [["c", "1"]], chart), part, tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert [line for line in text.split("\n") if line.startswith("## ")] == ["## Again", "## Two"]
    assert "nan" not in draw(chart)
