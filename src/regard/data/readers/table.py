"""Tab- or comma-separated columns.

Tabs separate and nothing else has a meaning: a quotation mark is text (corpora are full of unbalanced ones). Commas
are CSV as in RFC 4180: a quoted field may hold commas, doubled quotation marks and line breaks. Every row must have as
many columns as the first: a row that is ragged is refused, as its texts may stand in the wrong columns.
"""

import csv
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from regard.config.run import Table
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.open import CRLF, MAX_LINE_BYTES, count_odd_characters, iter_lines, list_files


class Row(NamedTuple):
    """The fields of a row, and the line where it begins."""

    where: Location
    fields: list[str]


class _Columns(NamedTuple):
    """Where the parts of an example stand in a row, from 0."""

    source: int
    target: int | None
    label: int | None


def read_table(source: Table, defects: Defects) -> Iterator[Example]:
    """The rows of a table; folders are read file by file."""
    for path in list_files(source.path, defects):
        yield from _read(rows(path, source.delimiter, defects), source, defects)


def rows(path: str, delimiter: Literal["tab", "comma"], defects: Defects) -> Iterator[Row]:
    """The rows of one file."""
    return _tab_rows(path, defects) if delimiter == "tab" else _comma_rows(path, defects)


def _read(table: Iterator[Row], source: Table, defects: Defects) -> Iterator[Example]:
    columns: _Columns | None = None
    width = 0
    for where, fields in table:
        if columns is None:
            width, columns = len(fields), _columns(source, fields, where)
            if source.header:
                continue
        if len(fields) != width:
            if fields in ([], [""]):  # a row of its own, so that nothing can slip
                defects.add("blank line left out", where)
                continue
            raise CorpusError(
                f"The row has {len(fields)} columns, the first one has {width}.",
                where=str(where),
                fix="Look for a tab or comma too many or too few, or for a line break inside a text.",
            )
        text = fields[columns.source]
        target = None if columns.target is None else fields[columns.target]
        label = None if columns.label is None else fields[columns.label]
        for part in (text, target):
            if part is not None:
                if not part:
                    defects.add("empty text", where)
                count_odd_characters(part, where, defects)
        if label == "":
            defects.add("empty label", where)
        yield Example(where, text, target, label, None, source.languages)


def _tab_rows(path: str, defects: Defects) -> Iterator[Row]:
    for block in iter_lines(path, defects):
        for number, line in enumerate(block.lines, block.first_line):
            yield Row(Location(path, number), line.split("\t"))


def _comma_rows(path: str, defects: Defects) -> Iterator[Row]:
    """Rows of CSV: one without a quotation mark is split at its commas, others are read by the csv module."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))  # its own limit of 128 KiB is no reason to stop
    lines = _raw_lines(path, defects)
    for number, line in lines:
        where = Location(path, number)
        if '"' in line:
            yield Row(where, _quoted(line, lines, where, defects))
        else:
            yield Row(where, _without_return(line, where, defects).split(","))


def _quoted(line: str, following: Iterator[tuple[int, str]], where: Location, defects: Defects) -> list[str]:
    """The fields of a row with quotation marks, which may go on in the following lines."""
    last = line

    def more() -> Iterator[str]:
        nonlocal last
        yield f"{line}\n"
        for _, last in following:
            yield f"{last}\n"

    try:
        fields = next(csv.reader(more(), strict=True))
    except csv.Error as error:
        raise CorpusError(
            f"Not CSV: {error}.",
            where=str(where),
            fix="Is a quotation mark never closed? For plain columns use tabs: they need no quoting.",
        ) from error
    _without_return(last, where, defects)  # the csv module took it off
    return fields


def _raw_lines(path: str, defects: Defects) -> Iterator[tuple[int, str]]:
    for block in iter_lines(path, defects, keep_returns=True):
        yield from enumerate(block.lines, block.first_line)


def _without_return(line: str, where: Location, defects: Defects) -> str:
    if not line.endswith("\r"):
        return line
    defects.add(CRLF, where)
    return line[:-1]


def _columns(source: Table, first: list[str], where: Location) -> _Columns:
    find = _finder(first, named=source.header, where=where)
    target = None if source.target is None else find(source.target)
    return _Columns(find(source.source), target, None if source.label is None else find(source.label))


def _finder(first: list[str], *, named: bool, where: Location) -> Callable[[int | str], int]:
    """What finds a column by number or by the name in the first row."""

    def find(column: int | str) -> int:
        if isinstance(column, int):
            if 1 <= column <= len(first):
                return column - 1
            raise CorpusError(f"There is no column {column}: the first row has {len(first)}.", where=str(where))
        if not named:
            fix = "Set header = true, or give the number."
            raise CorpusError(f"Column '{column}' is a name, but the table has no header.", where=str(where), fix=fix)
        if first.count(column) == 1:
            return first.index(column)
        times = "twice or more" if column in first else "not"
        fix = f"It has: {', '.join(first)}."
        raise CorpusError(f"Column '{column}' is {times} in the header.", where=str(where), fix=fix)

    return find
