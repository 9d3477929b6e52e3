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
from regard.data.doctor.findings import changed_error, explain_row, reread
from regard.data.example import Defects, Example, Location
from regard.data.readers.lines import pair_files
from regard.data.readers.text_files import COMPRESSED_SUFFIXES, QUARANTINE_FILE, iter_chunks, list_files


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What was written: the files, and how many rows went where."""

    files: tuple[str, ...]
    kept: int
    removed: int


def write_cleaned(
    diagnosis: Diagnosis, sources: Sequence[AnySource], corpus: Iterable[Example], folder: Path
) -> CleanResult:
    """Write the cleaned corpus and the quarantine to a new folder, whole or not at all."""
    if diagnosis.read_error is not None:
        raise diagnosis.read_error  # half a corpus is no cleaned one
    is_removed = diagnosis.removal_mask()
    copies = _plan_copies(sources)
    with create_folder(folder) as staging:
        jsonl_names: dict[str, str] = {
            path: f"{_strip_compression(path)}.jsonl" for source in sources for path in _list_record_paths(source)
        }
        _check_name_clashes([name for _, name in copies] + list(jsonl_names.values()))
        rows: dict[str, _FileRows] = {}
        with ExitStack() as stack:
            quarantine = stack.enter_context((staging / QUARANTINE_FILE).open("wb"))
            records = {path: stack.enter_context((staging / name).open("wb")) for path, name in jsonl_names.items()}
            record_file_by_path = {file: records[path] for path in records for file in list_files(path, Defects())}
            copied_files = {partner for (_, partner), _ in copies}
            for row, example in reread(diagnosis, corpus):
                rows.setdefault(example.where.file, _FileRows()).add(
                    example.where.line, is_removed=bool(is_removed[row])
                )
                if is_removed[row]:
                    _write_record(quarantine, _make_quarantine_record(diagnosis, row, example))
                elif example.where.file not in copied_files:
                    _write_record(record_file_by_path[example.where.file], _to_record(example))
        for (path, partner), name in copies:
            _copy_kept_lines(path, staging / name, rows.get(partner, _FileRows()))
        names = tuple(sorted(path.name for path in staging.iterdir()))
    removed_count = int(is_removed.sum())
    return CleanResult(names, len(is_removed) - removed_count, removed_count)


class _FileRows:
    """The rows of one file: the line where each begins, and whether it is removed; 9 bytes a row."""

    def __init__(self) -> None:
        self.lines = array("Q")
        self.is_removed = bytearray()

    def add(self, line: int, *, is_removed: bool) -> None:
        self.lines.append(line)
        self.is_removed.append(is_removed)


def _plan_copies(sources: Sequence[AnySource]) -> list[tuple[tuple[str, str], str]]:
    """The files to copy line by line: each with the file whose rows decide, and its new name."""
    pairs: list[tuple[str, str]] = []
    for source in sources:
        if isinstance(source, Lines):
            pairs += [(path, path) for path in list_files(source.source, Defects())]
            if source.target is not None:
                pairs += [(right, left) for left, right in pair_files(source.source, source.target, Defects())]
        elif isinstance(source, Table | Jsonl):
            pairs += [(path, path) for path in list_files(source.path, Defects())]
    return [(pair, PurePosixPath(pair[0]).name) for pair in pairs]


def _list_record_paths(source: AnySource) -> list[str]:
    """The paths of a source whose rows are no lines."""
    return [] if isinstance(source, Lines | Table | Jsonl) else [source.path]


def _copy_kept_lines(path: str, target: Path, rows: _FileRows) -> None:
    """Copy a file without the lines of removed rows; a line that begins no row belongs to the row before it."""
    is_removed, row = 0, 0
    with _open_compressed(target) as file:
        for number, line in enumerate(_read_raw_lines(path), 1):
            if row < len(rows.lines) and rows.lines[row] == number:
                is_removed, row = rows.is_removed[row], row + 1
            if not is_removed:
                file.write(line)
    if row < len(rows.lines):
        raise changed_error(Location(path, rows.lines[row]))


def _read_raw_lines(path: str) -> Iterator[bytes]:
    for chunk in iter_chunks(path):
        yield from io.BytesIO(chunk)


def _open_compressed(path: Path) -> BinaryIO:
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.GzipFile(path, "wb", compresslevel=6, mtime=0))
        case ".xz":
            return cast(BinaryIO, lzma.open(path, "wb"))
        case ".zst":
            return cast(BinaryIO, import_optional("zstandard", "formats", "Packing .zst").open(path, "wb"))
    return path.open("wb")


def _make_quarantine_record(diagnosis: Diagnosis, row: int, example: Example) -> dict[str, object]:
    reason_by_rule = {finding.rule: finding.reason for finding in explain_row(diagnosis, row, example)}
    severities = {rule.name: rule.severity for rule in diagnosis.rules}
    reasons = {rule: reason for rule, reason in reason_by_rule.items() if severities[rule] == "remove"}
    return {"where": str(example.where), "reasons": reasons, **_to_record(example)}


def _to_record(example: Example) -> dict[str, object]:
    fields = {"source": example.source, "target": example.target, "label": example.label, "tags": example.tags}
    return {name: value for name, value in fields.items() if value is not None}


def _write_record(file: BinaryIO, record: dict[str, object]) -> None:
    file.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")


def _strip_compression(path: str) -> str:
    name = PurePosixPath(path)
    return name.with_suffix("").name if name.suffix.lower() in COMPRESSED_SUFFIXES else name.name


def _check_name_clashes(names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1 or name == QUARANTINE_FILE:
            raise RegardError(
                f"Two files would be called '{name}'.", fix="Clean them one after another, into folders of their own."
            )
