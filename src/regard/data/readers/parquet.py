"""Columns of a Parquet file, a row group at a time. Rows are counted from 1."""

from collections.abc import Iterator
from typing import Any

from regard.base.extras import import_optional
from regard.config.run import Parquet
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.open import count_odd_characters, list_files, open_binary
from regard.data.readers.jsonl import label_text

ROWS = 1024  # made into Python texts at a time


def read_parquet(source: Parquet, defects: Defects) -> Iterator[Example]:
    """The rows of a file; folders are read file by file."""
    for path in list_files(source.path, defects):
        yield from _read(path, source, defects)


def _read(path: str, source: Parquet, defects: Defects) -> Iterator[Example]:
    arrow = import_optional("pyarrow", "formats", "Reading Parquet")
    parquet = import_optional("pyarrow.parquet", "formats", "Reading Parquet")
    row = 1
    with open_binary(path) as stored:
        try:
            with parquet.ParquetFile(stored, pre_buffer=False) as file:
                _check_columns(arrow, file.schema_arrow, source, path)
                columns = list(dict.fromkeys(name for name in (source.source, source.target, source.label) if name))
                for batch in file.iter_batches(batch_size=ROWS, columns=columns, use_threads=False):
                    yield from _rows(batch, path, row, source, defects)
                    row += batch.num_rows
        except (arrow.ArrowException, UnicodeDecodeError, OSError) as error:
            where = Location(path, row)
            fix = "Take a good copy; Parquet packs by itself, so .parquet.gz must be unpacked first."
            raise CorpusError(f"The Parquet file is damaged: {error}.", where=str(where), fix=fix) from error


def _rows(batch: Any, path: str, first: int, source: Parquet, defects: Defects) -> Iterator[Example]:
    empty = [None] * batch.num_rows
    texts = _texts(batch.column(source.source), path, first)
    targets = empty if source.target is None else _texts(batch.column(source.target), path, first)
    labels = empty if source.label is None else batch.column(source.label).to_pylist()
    for row, (text, target, label) in enumerate(zip(texts, targets, labels, strict=True), first):
        where = Location(path, row)
        if text is None or (source.target is not None and target is None):
            defects.add("null left out", where)
            continue
        for part in (text, target):
            if part == "":
                defects.add("empty text", where)
            if part:
                count_odd_characters(part, where, defects)
        named = None if source.label is None else label_text(label, source.label, where)
        yield Example(where, text, target, named, None, source.languages)


def _texts(column: Any, path: str, first: int) -> list[str | None]:
    """A column as texts; Parquet does not promise that they are UTF-8."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        for row, value in enumerate(column, first):
            try:
                value.as_py()
            except UnicodeDecodeError as error:
                byte = f"0x{error.object[error.start]:02x}, byte {error.start + 1} of the text"
                fix = "Write the column again as UTF-8."
                raise CorpusError(f"Not UTF-8: {byte}.", where=str(Location(path, row)), fix=fix) from error
        raise


def _check_columns(arrow: Any, schema: Any, source: Parquet, path: str) -> None:
    for name in (source.source, source.target, source.label):
        if name is None:
            continue
        if schema.names.count(name) != 1:
            times = "twice or more" if name in schema.names else "not"
            fix = f"It has: {', '.join(schema.names)}."
            raise CorpusError(f"Column '{name}' is {times} in the file.", where=str(Location(path, 1)), fix=fix)
        kind = schema.field(name).type
        text = kind.value_type if arrow.types.is_dictionary(kind) else kind
        if name != source.label and not (arrow.types.is_string(text) or arrow.types.is_large_string(text)):
            raise CorpusError(f"Column '{name}' holds {kind}, not text.", where=str(Location(path, 1)))
