"""Write a cleaned corpus: the lines that no removing rule flags, and a quarantine file with the others and the reasons.

Plain text, tables, JSONL and CoNLL are copied byte by byte without the removed lines, under the same names; other
formats are written as JSONL. Every row of the input is either in the cleaned corpus or in `rejected.jsonl`.
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
from regard.config.sources import AnySourceConfig, ConllConfig, JsonlConfig, LinesConfig, TableConfig
from regard.data.doctor.check import CorpusReport
from regard.data.doctor.findings import changed_error, explain_row, reread
from regard.data.example import Defects, Example, Location
from regard.data.readers.lines import pair_files
from regard.data.readers.text_files import QUARANTINE_FILE, iter_chunks, list_files, strip_compression


@dataclass(frozen=True, slots=True)
class CleanResult:
    """The files written, and the numbers of rows kept and removed."""

    files: tuple[str, ...]
    kept_rows: int
    removed_rows: int


def write_cleaned(
    corpus_report: CorpusReport, sources: Sequence[AnySourceConfig], corpus: Iterable[Example], folder: Path
) -> CleanResult:
    """Write the cleaned corpus and the quarantine file to a new folder; the folder appears only when complete.

    Args:
        corpus_report: The result of `check_corpus` on this corpus.
        sources: The sources that `corpus` reads.
        corpus: The examined examples, in the same order.
        folder: The folder to create; it must not exist.

    Raises:
        RegardError: Two files would get the same name, or the folder exists.
        CorpusError: The corpus changed since it was checked, or could not be read to its end.
    """
    if corpus_report.read_error is not None:
        raise corpus_report.read_error  # never write an incomplete corpus
    is_removed = corpus_report.removal_mask()
    copies = _plan_copies(sources)
    with create_folder(folder) as staging:
        jsonl_names: dict[str, str] = {
            source.path: f"{strip_compression(source.path).name}.jsonl"
            for source in sources
            if not isinstance(source, LinesConfig | TableConfig | JsonlConfig | ConllConfig)
        }
        _check_name_clashes([name for _, name in copies] + list(jsonl_names.values()))
        rows: dict[str, _FileRows] = {}
        with ExitStack() as stack:
            rejected = stack.enter_context((staging / QUARANTINE_FILE).open("wb"))
            records = {path: stack.enter_context((staging / name).open("wb")) for path, name in jsonl_names.items()}
            record_file_by_path = {file: records[path] for path in records for file in list_files(path, Defects())}
            copied_files = {row_file for (_, row_file), _ in copies}
            for row, example in reread(corpus_report, corpus):
                rows.setdefault(example.location.file, _FileRows()).add(
                    example.location.line, is_removed=bool(is_removed[row])
                )
                if is_removed[row]:
                    _write_record(rejected, _make_quarantine_record(corpus_report, row, example))
                elif example.location.file not in copied_files:
                    _write_record(record_file_by_path[example.location.file], _to_record(example))
        sentence_files = {
            path for source in sources if isinstance(source, ConllConfig) for path in list_files(source.path, Defects())
        }
        for (path, row_file), name in copies:
            file_rows = rows.get(row_file, _FileRows())
            _copy_kept_rows(path, staging / name, file_rows, are_sentences=path in sentence_files)
        names = tuple(sorted(path.name for path in staging.iterdir()))
    removed_count = int(is_removed.sum())
    return CleanResult(names, len(is_removed) - removed_count, removed_count)


class _FileRows:
    """The rows of one file: the first line of each, and whether it is removed (9 bytes per row)."""

    def __init__(self) -> None:
        self.lines = array("Q")
        self.is_removed = bytearray()

    def add(self, line: int, *, is_removed: bool) -> None:
        self.lines.append(line)
        self.is_removed.append(is_removed)


def _plan_copies(sources: Sequence[AnySourceConfig]) -> list[tuple[tuple[str, str], str]]:
    """The files to copy line by line, each with the file whose rows decide what stays, and its new name."""
    pairs: list[tuple[str, str]] = []  # the file to copy, and the one that examples name as their location
    for source in sources:
        if isinstance(source, LinesConfig):
            pairs += [(path, path) for path in list_files(source.source, Defects())]
            if source.target is not None:
                pairs += [(target, path) for path, target in pair_files(source.source, source.target, Defects())]
        elif isinstance(source, TableConfig | JsonlConfig | ConllConfig):
            pairs += [(path, path) for path in list_files(source.path, Defects())]
    return [(pair, PurePosixPath(pair[0]).name) for pair in pairs]


def _copy_kept_rows(path: str, target: Path, rows: _FileRows, *, are_sentences: bool) -> None:
    """Copy a file without removed rows.

    A row includes the lines up to the next row. A sentence of CoNLL includes its comments and the blank line after it.
    """
    is_removed, row = 0, 0
    pending_lines: list[bytes] = []  # comments come before the first line of their sentence
    with _open_compressed(target) as file:
        for number, line in enumerate(_read_raw_lines(path), 1):
            if row < len(rows.lines) and rows.lines[row] == number:
                is_removed, row = rows.is_removed[row], row + 1
            pending_lines.append(line)
            if are_sentences and line.strip():
                continue
            file.write(b"" if is_removed else b"".join(pending_lines))
            pending_lines = []
            is_removed = 0 if are_sentences else is_removed
        file.write(b"" if is_removed else b"".join(pending_lines))
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
            return cast(BinaryIO, import_optional("zstandard", "formats", "Compressing .zst").open(path, "wb"))
    return path.open("wb")


def _make_quarantine_record(corpus_report: CorpusReport, row: int, example: Example) -> dict[str, object]:
    reason_by_rule = {finding.rule: finding.reason for finding in explain_row(corpus_report, row, example)}
    severities = {rule.name: rule.severity for rule in corpus_report.rules}
    reasons = {rule: reason for rule, reason in reason_by_rule.items() if severities[rule] == "remove"}
    return {"location": str(example.location), "reasons": reasons, **_to_record(example)}


def _to_record(example: Example) -> dict[str, object]:
    fields = {"source": example.source, "target": example.target, "label": example.label, "tags": example.tags}
    return {name: value for name, value in fields.items() if value is not None}


def _write_record(file: BinaryIO, record: dict[str, object]) -> None:
    file.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")


def _check_name_clashes(names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1 or name == QUARANTINE_FILE:
            raise RegardError(
                f"Two files would be called '{name}'.", hint="Clean them separately, into different folders."
            )
