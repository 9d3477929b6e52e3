"""Stored runs: commands that take longer than a page may, with their output."""

import math
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


class StoredRows(dict[str, list[float]]):
    """Numbers by the label of their row; `str.format` looks a label of digits up as an integer."""

    def __missing__(self, label: int) -> list[float]:
        """Return the row with this number as its label."""
        if not isinstance(label, int):
            raise KeyError(label)
        return self[str(label)]


@cache
def read_runs() -> Mapping[str, Mapping[str, Any]]:
    """Return the runs of stored.toml by name."""
    return tomllib.loads((files("regard.lectures") / "stored.toml").read_text(encoding="utf-8"))


def read_stored(name: str) -> Mapping[str, Any]:
    """Return the numbers of a run of stored.toml."""
    numbers: Mapping[str, Any] = read_runs()[name]["numbers"]
    return numbers


@cache
def read_rows(name: str) -> StoredRows:
    """Return the numbers of a stored table by the label of their row; a cell that is no number is NaN."""
    return StoredRows((row[0], [_read_number(cell) for cell in row[1:]]) for row in _split(read_runs()[name]["output"]))


def align_columns(output: str) -> str:
    """Return an output that is a Markdown table with aligned columns; others as they are."""
    if not output.startswith("|"):
        return output
    rows = [row for row in _split(output) if not row[0].startswith("-")]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        [cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    )
    return "\n".join("  ".join(line) for line in lines)


def _split(output: str) -> list[list[str]]:
    # Columns end at | in Markdown, at two spaces in plain text.
    lines = (line.strip() for line in output.strip().splitlines())
    parts = (line.strip("|").split("|") if line.startswith("|") else re.split(r" {2,}", line) for line in lines)
    return [[cell.strip() for cell in row] for row in parts]


def _read_number(cell: str) -> float:
    try:
        return float(cell.removesuffix("%").replace(",", ""))
    except ValueError:
        return math.nan
