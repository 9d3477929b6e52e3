"""Reader for tab-separated (TSV) and comma-separated (CSV) tables.

In TSV only the tab is special: a quotation mark is text, because corpora are full of unbalanced ones. CSV follows
RFC 4180: a quoted field may hold commas, doubled quotation marks and line breaks. Every row must have as many columns
as the first; in a ragged row the texts may be in the wrong columns, so it is an error.
"""

import csv
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from regard.base.formatting import pluralize
from regard.config.run import Table
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import CRLF, MAX_LINE_BYTES, count_text_defects, iter_lines, list_files


class TableRow(NamedTuple):
    """The fields of a row, and the line where the row begins."""

    where: Location
    fields: list[str]


class _Columns(NamedTuple):
    """The column indices of source, target and label, from 0."""

    source: int
    target: int | None
    label: int | None


def read_table(source: Table, defects: Defects) -> Iterator[Example]:
    """Read the rows of a file or of every file in a folder."""
    for path in list_files(source.path, defects):
        yield from _make_examples(read_rows(path, source.delimiter, defects), source, defects)


def read_rows(path: str, delimiter: Literal["tab", "comma"], defects: Defects) -> Iterator[TableRow]:
    """Read the rows of one file, including a header."""
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
            if fields in ([], [""]):  # it holds no text, so no pair can shift
                defects.add("blank line left out", where)
                continue
            raise CorpusError(
                f"The row has {pluralize(len(fields), 'column')}, the first row has {width}.",
                where=str(where),
                fix="Look for a missing or extra tab or comma, or for a line break inside a text.",
            )
        text = fields[columns.source]
        target = None if columns.target is None else fields[columns.target]
        label = None if columns.label is None else fields[columns.label]
        count_text_defects((text, target), where, defects)
        if label == "":
            defects.add("empty label", where)
        yield Example(where, text, target, label, None, source.languages)


def _read_tab_rows(path: str, defects: Defects) -> Iterator[TableRow]:
    for block in iter_lines(path, defects):
        for number, line in enumerate(block.lines, block.first_line):
            yield TableRow(Location(path, number), line.split("\t"))


def _read_comma_rows(path: str, defects: Defects) -> Iterator[TableRow]:
    """Read CSV rows: rows without quotation marks are split at commas, the csv module parses the others."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))  # the default is 128 KiB
    lines = _read_raw_lines(path, defects)
    for number, line in lines:
        where = Location(path, number)
        if '"' in line:
            yield TableRow(where, _parse_quoted(line, lines, where, defects))
        else:
            yield TableRow(where, _strip_carriage_return(line, where, defects).split(","))


def _parse_quoted(line: str, next_lines: Iterator[tuple[int, str]], where: Location, defects: Defects) -> list[str]:
    """Parse a row with quotation marks, which may continue on the next lines."""
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
            fix="Look for an unclosed quotation mark, or use tabs, which need no quoting.",
        ) from error
    _strip_carriage_return(last_line, where, defects)  # only to count it: the csv module removed it
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
    """Make a function that returns the index of a column, given its number (from 1) or its header name."""

    def find_column(column: int | str) -> int:
        if isinstance(column, int):
            if 1 <= column <= len(first_row):
                return column - 1
            what = f"There is no column {column}: the first row has {pluralize(len(first_row), 'column')}."
            raise CorpusError(what, where=str(where), fix="Give a column number that exists, counted from 1.")
        if not has_header:
            fix = "Set header = true, or give the column number."
            raise CorpusError(f"Column '{column}' is a name, but the table has no header.", where=str(where), fix=fix)
        if first_row.count(column) == 1:
            return first_row.index(column)
        count = first_row.count(column)
        fix = f"The header has these columns: {', '.join(first_row)}."
        raise CorpusError(f"The header has {count} columns named '{column}'.", where=str(where), fix=fix)

    return find_column
