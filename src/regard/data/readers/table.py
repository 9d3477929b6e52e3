"""Reader for tables: tab-separated (TSV), separated by commas or semicolons (CSV), or by two or more spaces.

In TSV only the tab is special: a quotation mark is text, because corpora are full of unbalanced ones. CSV follows
RFC 4180: a quoted field may hold separators, doubled quotation marks and line breaks. Every row must have as many
columns as the first; in a ragged row the texts may be in the wrong columns, so it is an error.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

from regard.base.formatting import pluralize
from regard.config.sources import TableConfig
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import CRLF, MAX_LINE_BYTES, count_text_defects, iter_lines, list_files

Delimiter = Literal["tab", "semicolon", "comma", "spaces"]
DELIMITERS: tuple[Delimiter, ...] = get_args(Delimiter)  # the more certain ones first
MIN_ROWS = 3  # rows that show which delimiter a table has
_SEPARATORS = {"comma": ",", "semicolon": ";"}
_SPACES = re.compile(" {2,}")


class TableRow(NamedTuple):
    """The fields of a row, and the line where the row begins."""

    location: Location
    fields: list[str]


class _Columns(NamedTuple):
    """The column indices of source, target and label, from 0."""

    source: int
    target: int | None
    label: int | None


def read_table(source: TableConfig, defects: Defects) -> Iterator[Example]:
    """Read the rows of a file or of every file in a folder."""
    for path in list_files(source.path, defects):
        yield from _make_examples(read_rows(path, source.delimiter, defects), source, defects)


def read_rows(path: str, delimiter: Delimiter, defects: Defects) -> Iterator[TableRow]:
    """Read the rows of one file, including a header."""
    if delimiter in ("comma", "semicolon"):
        return _read_csv_rows(path, delimiter, defects)
    return _read_plain_rows(path, delimiter, defects)


def is_split(lines: Sequence[str], delimiter: Delimiter) -> bool:
    """Whether a delimiter splits these first lines of a file into rows of the same width, of two columns or more."""
    widths: Counter[int] = Counter()
    try:
        rows = map(_SPLIT[delimiter], lines) if delimiter in _SPLIT else _parse_csv(lines, delimiter)
        for row in rows:
            widths[len(row)] += 1
    except csv.Error as error:
        # A quoted field may continue after these lines; enough rows show the delimiter despite a wrong quote.
        if "unexpected end" not in str(error) and widths.total() < MIN_ROWS:
            return False
    return len(widths) == 1 and max(widths) > 1


def _make_examples(table: Iterator[TableRow], source: TableConfig, defects: Defects) -> Iterator[Example]:
    columns: _Columns | None = None
    width = 0
    for location, fields in table:
        if columns is None:
            width, columns = len(fields), _find_columns(source, fields, location)
            if source.header:
                continue
        if len(fields) != width:
            if fields in ([], [""]):  # it has no text, so pairs do not shift
                defects.add("blank line left out", location)
                continue
            raise CorpusError(
                f"The row has {pluralize(len(fields), 'column')}, the first row has {width}.",
                location=str(location),
                hint="Look for a missing or extra separator, or for a line break inside a text.",
            )
        text = fields[columns.source]
        target = None if columns.target is None else fields[columns.target]
        label = None if columns.label is None else fields[columns.label]
        count_text_defects((text, target), location, defects)
        if label == "":
            defects.add("empty label", location)
        yield Example(location, text, target, label, None, source.languages)


_SPLIT: dict[str, Callable[[str], list[str]]] = {
    "tab": lambda line: line.split("\t"),
    "spaces": lambda line: _SPACES.split(line.strip(" ")),
}


def _read_plain_rows(path: str, delimiter: Delimiter, defects: Defects) -> Iterator[TableRow]:
    split = _SPLIT[delimiter]
    for block in iter_lines(path, defects):
        for number, line in enumerate(block.lines, block.first_line):
            yield TableRow(Location(path, number), split(line))


def _read_csv_rows(path: str, delimiter: Delimiter, defects: Defects) -> Iterator[TableRow]:
    """Read CSV rows: rows without quotation marks are split at separators, the csv module parses the others."""
    lines = _read_raw_lines(path, defects)
    for number, line in lines:
        location = Location(path, number)
        if '"' in line:
            yield TableRow(location, _parse_quoted(line, lines, delimiter, location, defects))
        else:
            yield TableRow(location, _strip_carriage_return(line, location, defects).split(_SEPARATORS[delimiter]))


def _parse_csv(lines: Iterable[str], delimiter: Delimiter) -> Iterator[list[str]]:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))  # the default is 128 KiB
    return csv.reader(lines, delimiter=_SEPARATORS[delimiter], strict=True)


def _parse_quoted(
    line: str, next_lines: Iterator[tuple[int, str]], delimiter: Delimiter, location: Location, defects: Defects
) -> list[str]:
    """Parse a row with quotation marks, which may continue on the next lines."""
    last_line = line

    def iter_row_lines() -> Iterator[str]:
        nonlocal last_line
        yield f"{line}\n"
        for _, last_line in next_lines:
            yield f"{last_line}\n"

    try:
        fields = next(_parse_csv(iter_row_lines(), delimiter))
    except csv.Error as error:
        raise CorpusError(
            f"Not CSV: {error}.",
            location=str(location),
            hint="Look for an unclosed quotation mark, or use tabs, which need no quoting.",
        ) from error
    _strip_carriage_return(last_line, location, defects)  # only to count it: the csv module removed it
    return fields


def _read_raw_lines(path: str, defects: Defects) -> Iterator[tuple[int, str]]:
    for block in iter_lines(path, defects, keep_returns=True):
        yield from enumerate(block.lines, block.first_line)


def _strip_carriage_return(line: str, location: Location, defects: Defects) -> str:
    if not line.endswith("\r"):
        return line
    defects.add(CRLF, location)
    return line[:-1]


def _find_columns(source: TableConfig, first_row: list[str], location: Location) -> _Columns:
    find_column = _make_finder(first_row, has_header=source.header, location=location)
    target = None if source.target is None else find_column(source.target)
    return _Columns(find_column(source.source), target, None if source.label is None else find_column(source.label))


def _make_finder(first_row: list[str], *, has_header: bool, location: Location) -> Callable[[int | str], int]:
    """Make a function that returns the index of a column, given its number (from 1) or its header name."""

    def find_column(column: int | str) -> int:
        if isinstance(column, int):
            if 1 <= column <= len(first_row):
                return column - 1
            message = f"There is no column {column}: the first row has {pluralize(len(first_row), 'column')}."
            raise CorpusError(message, location=str(location), hint="Give a column number that exists, counted from 1.")
        if not has_header:
            hint = "Set header = true, or give the column number."
            raise CorpusError(
                f"Column '{column}' is a name, but the table has no header.", location=str(location), hint=hint
            )
        if first_row.count(column) == 1:
            return first_row.index(column)
        count = first_row.count(column)
        hint = f"The header has these columns: {', '.join(first_row)}."
        raise CorpusError(f"The header has {count} columns named '{column}'.", location=str(location), hint=hint)

    return find_column
