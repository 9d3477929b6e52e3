"""The cleaned corpus: what no removing rule speaks about, and a quarantine file with everything else and why.

Files of lines (plain, tables, JSONL) are copied byte by byte without the removed lines, under the same names; other
formats are written as JSONL. Every row of the input is in the cleaned corpus or in `quarantine.jsonl`, never in both.
"""

import gzip
import io
import json
import lzma
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.files import create_folder
from regard.config.run import AnySource, Jsonl, Lines, Table
from regard.data.doctor.examine import Diagnosis
from regard.data.doctor.explain import changed, findings, same
from regard.data.example import Defects, Example, Location
from regard.data.open import COMPRESSED_SUFFIXES, QUARANTINE_FILE, iter_chunks, list_files
from regard.data.readers.lines import partners


@dataclass(frozen=True, slots=True)
class Written:
    """What was written: the files, and how many rows went where."""

    files: tuple[str, ...]
    kept: int
    removed: int


def write(diagnosis: Diagnosis, sources: Sequence[AnySource], corpus: Iterable[Example], folder: Path) -> Written:
    """Write the cleaned corpus and the quarantine to a new folder, whole or not at all."""
    if diagnosis.broken is not None:
        raise diagnosis.broken  # half a corpus is no cleaned one
    removed = diagnosis.removed()
    copies = _copies(sources)
    with create_folder(folder) as inside:
        others: dict[str, str] = {path: f"{_bare(path)}.jsonl" for source in sources for path in _records(source)}
        _refuse_clashes([name for _, name in copies] + list(others.values()))
        rows: dict[str, _Rows] = {}
        with ExitStack() as open_files:
            quarantine = open_files.enter_context((inside / QUARANTINE_FILE).open("wb"))
            records = {path: open_files.enter_context((inside / name).open("wb")) for path, name in others.items()}
            file_of = {file: records[path] for path in records for file in list_files(path, Defects())}
            copied = {partner for (_, partner), _ in copies}
            for row, example in same(diagnosis, corpus):
                rows.setdefault(example.where.file, _Rows()).add(example.where.line, removed=bool(removed[row]))
                if removed[row]:
                    _put(quarantine, _removed(diagnosis, row, example))
                elif example.where.file not in copied:
                    _put(file_of[example.where.file], _fields(example))
        for (path, partner), name in copies:
            _copy(path, inside / name, rows.get(partner, _Rows()))
        names = tuple(sorted(path.name for path in inside.iterdir()))
    gone = int(removed.sum())
    return Written(names, len(removed) - gone, gone)


class _Rows:
    """The rows of one file: the line where each begins, and whether it is removed; 9 bytes a row."""

    def __init__(self) -> None:
        self.lines = array("Q")
        self.removed = bytearray()

    def add(self, line: int, *, removed: bool) -> None:
        self.lines.append(line)
        self.removed.append(removed)


def _copies(sources: Sequence[AnySource]) -> list[tuple[tuple[str, str], str]]:
    """The files to copy line by line: each with the file whose rows decide, and its new name."""
    pairs: list[tuple[str, str]] = []
    for source in sources:
        if isinstance(source, Lines):
            pairs += [(path, path) for path in list_files(source.source, Defects())]
            if source.target is not None:
                pairs += [(right, left) for left, right in partners(source.source, source.target, Defects())]
        elif isinstance(source, Table | Jsonl):
            pairs += [(path, path) for path in list_files(source.path, Defects())]
    return [(pair, PurePosixPath(pair[0]).name) for pair in pairs]


def _records(source: AnySource) -> list[str]:
    """The paths of a source whose rows are no lines."""
    return [] if isinstance(source, Lines | Table | Jsonl) else [source.path]


def _copy(path: str, target: Path, rows: _Rows) -> None:
    """Copy a file without the lines of removed rows; a line that begins no row belongs to the row before it."""
    removed, row = 0, 0
    with _packed(target) as file:
        for number, line in enumerate(_raw_lines(path), 1):
            if row < len(rows.lines) and rows.lines[row] == number:
                removed, row = rows.removed[row], row + 1
            if not removed:
                file.write(line)
    if row < len(rows.lines):
        raise changed(Location(path, rows.lines[row]))


def _raw_lines(path: str) -> Iterator[bytes]:
    for stretch in iter_chunks(path):
        yield from io.BytesIO(stretch)


def _packed(path: Path) -> BinaryIO:
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.GzipFile(path, "wb", compresslevel=6, mtime=0))
        case ".xz":
            return cast(BinaryIO, lzma.open(path, "wb"))
        case ".zst":
            return cast(BinaryIO, import_optional("zstandard", "formats", "Packing .zst").open(path, "wb"))
    return path.open("wb")


def _removed(diagnosis: Diagnosis, row: int, example: Example) -> dict[str, object]:
    wrong = {found.rule: found.reason for found in findings(diagnosis, row, example)}
    severities = {rule.name: rule.severity for rule in diagnosis.rules}
    reasons = {rule: reason for rule, reason in wrong.items() if severities[rule] == "remove"}
    return {"where": str(example.where), "reasons": reasons, **_fields(example)}


def _fields(example: Example) -> dict[str, object]:
    fields = {"source": example.source, "target": example.target, "label": example.label, "tags": example.tags}
    return {name: value for name, value in fields.items() if value is not None}


def _put(file: BinaryIO, record: dict[str, object]) -> None:
    file.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")


def _bare(path: str) -> str:
    name = PurePosixPath(path)
    return name.with_suffix("").name if name.suffix.lower() in COMPRESSED_SUFFIXES else name.name


def _refuse_clashes(names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1 or name == QUARANTINE_FILE:
            raise RegardError(
                f"Two files would be called '{name}'.", fix="Clean them one after another, into folders of their own."
            )
