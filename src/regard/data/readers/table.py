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
from regard.data.readers.text_files import CRLF, MAX_LINE_BYTES, count_odd_characters, iter_lines, list_files


class TableRow(NamedTuple):
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
        yield from _make_examples(read_rows(path, source.delimiter, defects), source, defects)


def read_rows(path: str, delimiter: Literal["tab", "comma"], defects: Defects) -> Iterator[TableRow]:
    """The rows of one file."""
    return _read_tab_rows(path, defects) if delimiter == "tab" else _read_comma_rows(path, defects)


def _make_examples(table: Iterator[TableRow], source: Table, defects: Defects) -> Iterator[Example]:
    columns: _Columns | None = None
    width = 0
    for where, fields in table:
        if columns is None:
            width, columns = len(fields), _find_columns(source, fields, where)
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


def _read_tab_rows(path: str, defects: Defects) -> Iterator[TableRow]:
    for block in iter_lines(path, defects):
        for number, line in enumerate(block.lines, block.first_line):
            yield TableRow(Location(path, number), line.split("\t"))


def _read_comma_rows(path: str, defects: Defects) -> Iterator[TableRow]:
    """Rows of CSV: one without a quotation mark is split at its commas, others are read by the csv module."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))  # its own limit of 128 KiB is no reason to stop
    lines = _read_raw_lines(path, defects)
    for number, line in lines:
        where = Location(path, number)
        if '"' in line:
            yield TableRow(where, _parse_quoted(line, lines, where, defects))
        else:
            yield TableRow(where, _strip_carriage_return(line, where, defects).split(","))


def _parse_quoted(line: str, next_lines: Iterator[tuple[int, str]], where: Location, defects: Defects) -> list[str]:
    """The fields of a row with quotation marks, which may go on in the following lines."""
    last_line = line

    def iter_row_lines() -> Iterator[str]:
        nonlocal last_line
        yield f"{line}\n"
        for _, last_line in next_lines:
            yield f"{last_line}\n"

    try:
        fields = next(csv.reader(iter_row_lines(), strict=True))
    except csv.Error as error:
        raise CorpusError(
            f"Not CSV: {error}.",
            where=str(where),
            fix="Is a quotation mark never closed? For plain columns use tabs: they need no quoting.",
        ) from error
    _strip_carriage_return(last_line, where, defects)  # the csv module took it off
    return fields


def _read_raw_lines(path: str, defects: Defects) -> Iterator[tuple[int, str]]:
    for block in iter_lines(path, defects, keep_returns=True):
        yield from enumerate(block.lines, block.first_line)


def _strip_carriage_return(line: str, where: Location, defects: Defects) -> str:
    if not line.endswith("\r"):
        return line
    defects.add(CRLF, where)
    return line[:-1]


def _find_columns(source: Table, first_row: list[str], where: Location) -> _Columns:
    find_column = _make_finder(first_row, has_header=source.header, where=where)
    target = None if source.target is None else find_column(source.target)
    return _Columns(find_column(source.source), target, None if source.label is None else find_column(source.label))


def _make_finder(first_row: list[str], *, has_header: bool, where: Location) -> Callable[[int | str], int]:
    """What finds a column by number or by the name in the first row."""

    def find_column(column: int | str) -> int:
        if isinstance(column, int):
            if 1 <= column <= len(first_row):
                return column - 1
            raise CorpusError(f"There is no column {column}: the first row has {len(first_row)}.", where=str(where))
        if not has_header:
            fix = "Set header = true, or give the number."
            raise CorpusError(f"Column '{column}' is a name, but the table has no header.", where=str(where), fix=fix)
        if first_row.count(column) == 1:
            return first_row.index(column)
        times = "twice or more" if column in first_row else "not"
        fix = f"It has: {', '.join(first_row)}."
        raise CorpusError(f"Column '{column}' is {times} in the header.", where=str(where), fix=fix)

    return find_column
