"""Reader for Parquet files; it streams batches of rows. Locations count rows from 1."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from regard.base.extras import import_optional
from regard.config.sources import ParquetConfig
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.jsonl import format_label
from regard.data.readers.text_files import count_text_defects, list_files, open_binary

BATCH_ROWS = 1024  # rows converted to Python strings at a time
PARQUET_FIX = "Replace the file with an intact copy; decompress .parquet.gz first (Parquet compresses by itself)."


def read_parquet(source: ParquetConfig, defects: Defects) -> Iterator[Example]:
    """Read the rows of a file or of every file in a folder."""
    for path in list_files(source.path, defects):
        yield from _read_file(path, source, defects)


@contextmanager
def open_parquet(path: str, get_row: Callable[[], int]) -> Iterator[Any]:
    """Open a Parquet file; an error of it inside the block becomes a CorpusError at the current row."""
    arrow = import_optional("pyarrow", "formats", "Reading Parquet")
    parquet = import_optional("pyarrow.parquet", "formats", "Reading Parquet")
    with open_binary(path) as raw_file:
        try:
            with parquet.ParquetFile(raw_file, pre_buffer=False) as file:
                yield file
        except (arrow.ArrowException, UnicodeDecodeError, OSError) as error:
            message, location = f"The Parquet file is damaged: {error}.", str(Location(path, get_row()))
            raise CorpusError(message, location=location, hint=PARQUET_FIX) from error


def _read_file(path: str, source: ParquetConfig, defects: Defects) -> Iterator[Example]:
    arrow = import_optional("pyarrow", "formats", "Reading Parquet")
    row = 1
    with open_parquet(path, lambda: row) as file:
        _check_columns(arrow, file.schema_arrow, source, path)
        columns = list(dict.fromkeys(name for name in (source.source, source.target, source.label) if name))
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False):
            yield from _make_examples(batch, path, row, source, defects)
            row += batch.num_rows


def _make_examples(batch: Any, path: str, first_row: int, source: ParquetConfig, defects: Defects) -> Iterator[Example]:
    missing = [None] * batch.num_rows
    texts = _to_texts(batch.column(source.source), path, first_row)
    targets = missing if source.target is None else _to_texts(batch.column(source.target), path, first_row)
    labels = missing if source.label is None else batch.column(source.label).to_pylist()
    for row, (text, target, label) in enumerate(zip(texts, targets, labels, strict=True), first_row):
        location = Location(path, row)
        if text is None or (source.target is not None and target is None):
            defects.add("null left out", location)
            continue
        count_text_defects((text, target), location, defects)
        formatted_label = None if source.label is None else format_label(label, source.label, location)
        yield Example(location, text, target, formatted_label, None, source.languages)


def _to_texts(column: Any, path: str, first_row: int) -> list[str | None]:
    """Convert a column to strings; Parquet does not guarantee that they are valid UTF-8."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        for row, value in enumerate(column, first_row):
            try:
                value.as_py()
            except UnicodeDecodeError as error:
                byte = f"0x{error.object[error.start]:02x}, byte {error.start + 1} of the text"
                hint = "Rewrite the column as UTF-8."
                raise CorpusError(f"Not UTF-8: {byte}.", location=str(Location(path, row)), hint=hint) from error
        raise


def _check_columns(arrow: Any, schema: Any, source: ParquetConfig, path: str) -> None:
    for name in (source.source, source.target, source.label):
        if name is None:
            continue
        if schema.names.count(name) != 1:
            count = schema.names.count(name)
            hint = f"The file has these columns: {', '.join(schema.names)}."
            raise CorpusError(
                f"The file has {count} columns named '{name}'.", location=str(Location(path, 1)), hint=hint
            )
        column_type = schema.field(name).type
        value_type = column_type.value_type if arrow.types.is_dictionary(column_type) else column_type
        if name != source.label and not (arrow.types.is_string(value_type) or arrow.types.is_large_string(value_type)):
            message = f"Column '{name}' has type {column_type}, not string."
            raise CorpusError(message, location=str(Location(path, 1)), hint="Name a column of strings, or convert it.")
