"""Stored runs say what the committed results say."""

import re
from pathlib import Path

from regard.lectures.stored import align_columns, read_rows, read_runs

ROOT = Path(__file__).parents[2]


def test_numbers_of_results_are_stored_as_they_are() -> None:
    """Rows of a Markdown table are stored word for word; a table for the terminal has the same numbers."""
    checked = 0
    for name, run in read_runs().items():
        for path in re.findall(r"\S+RESULTS\.md", run["measured"]):
            text = (ROOT / path).read_text(encoding="utf-8")
            for line in run["output"].strip("\n").splitlines():
                parts = [line] if line.startswith("|") else re.findall(r"\d+\.\d+|\d{2,}", line)
                assert all(part in text for part in parts), f"{name}: {line}"
                checked += len(parts)
    assert checked > 50


def test_rows_of_both_forms_of_tables() -> None:
    assert read_rows("before-length")["12"] == [1.0, 100.0]
    assert read_rows("without-mask")["held-out loss, token by token"] == [0.5807, 8.8981]
    assert read_rows("before-speed")["GRU"][-3] == 2048.0


def test_markdown_tables_are_shown_in_columns() -> None:
    assert align_columns("| a | bc |\n|---|---:|\n| long | 1 |") == "a     bc\nlong   1"
    assert align_columns("a  1\nlong  2") == "a  1\nlong  2"
