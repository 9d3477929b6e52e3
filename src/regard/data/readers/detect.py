"""Detect the format of a corpus from its paths, for commands that take files instead of a run file.

File names decide first, then the first rows or the first record. If the format stays ambiguous, an error asks for it.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from statistics import median
from typing import Any

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.config.sources import (
    AnySourceConfig,
    AudioConfig,
    ConllConfig,
    DocumentsConfig,
    GettextConfig,
    ImagesConfig,
    JsonlConfig,
    LinesConfig,
    ParquetConfig,
    TableConfig,
    TmxConfig,
)
from regard.data.example import CorpusError, Defects
from regard.data.readers.audio import is_audio_file, is_audio_table
from regard.data.readers.columns import LANGUAGE_CODES, choose_columns, judge_column, parse_columns
from regard.data.readers.images import find_idx_labels, is_idx, is_image_file, is_image_table
from regard.data.readers.parquet import PARQUET_FIX
from regard.data.readers.table import DELIMITERS, MIN_ROWS, Delimiter, is_split, read_rows
from regard.data.readers.text_files import MAX_LINE_BYTES, iter_lines, list_files, open_binary, strip_compression
from regard.data.readers.tmx import read_units

# Two or three letters and an optional region: "en", "gsw", "pt-BR". Suffixes that match but are no language:
_LANGUAGE = re.compile(r"(?P<base>[a-z]{2,3})([-_][A-Za-z]{2,4})?")
_NOT_LANGUAGES = {"txt", "tok", "raw", "bpe", "src", "tgt", "trg", "ref", "doc", "md", "tsv", "csv", "log", "dat"}
_SOURCE_NAMES = ("source", "src", "text", "sentence")
_TARGET_NAMES = ("target", "tgt", "trg")
_LABEL_NAMES = ("label", "class", "sentiment", "category", "topic", "intent")
_FILE_NAMES = ("file", "path", "sound", "audio", "image")
_TEXT_NAMES = ("text", "sentence", "transcript", "transcription", "caption")
_DOCUMENT_MARK = re.compile(r"<\|\w+\|>|</s>|<eos>|<eot>")
_SAMPLE_CHARACTERS = 1 << 20  # of running text to inspect
_MIN_DOCUMENTS, _MIN_DOCUMENT_CHARACTERS = 10, 500  # the paragraphs of most novels are shorter
_MAX_ROWS = 1000  # rows of a table, or units of a TMX file, to inspect


def detect_source(paths: Sequence[str], columns: str | None = None) -> AnySourceConfig:
    """Detect the most likely source for one path, or for two aligned files.

    Args:
        paths: The files.
        columns: The columns of a table, or fields of records, that the user chose (see `parse_columns`).

    Raises:
        RegardError: The fields of a table, JSONL or Parquet file cannot be identified.

    >>> detect_source(["train.en.gz", "train.de.gz"])  # doctest: +ELLIPSIS
    LinesConfig(..., languages=('en', 'de'), kind='lines', source='train.en.gz', target='train.de.gz')
    """
    if columns is not None:
        return _select_columns(paths, parse_columns(columns))
    if len(paths) == 2:
        first_path, second_path = paths
        languages = tuple(filter(None, map(detect_language, paths)))
        return LinesConfig(source=first_path, target=second_path, languages=languages if len(languages) == 2 else ())
    if len(paths) != 1:
        raise RegardError(
            f"A corpus is 1 or 2 paths, got {len(paths)}.", hint="Give one file or folder, or two aligned files."
        )
    path = paths[0]
    first_path = list_files(path, Defects())[0]
    match strip_compression(first_path).suffix.lower():
        case ".tsv" | ".tab" | ".csv" as suffix:
            return _detect_table(path, first_path, _detect_delimiter(first_path, suffix))
        case ".jsonl" | ".ndjson":
            return JsonlConfig(path=path, **_detect_fields(_read_first_keys(first_path), first_path))
        case ".parquet":
            names = _read_parquet_columns(first_path)
            if "image" in names and not _find_name(names, _SOURCE_NAMES):
                return make_image_source(path)
            return ParquetConfig(path=path, **_detect_fields(names, first_path))
        case ".tmx":
            return TmxConfig(path=path, languages=_read_tmx_languages(first_path))
        case ".po" | ".mo" | ".pot":
            return GettextConfig(path=path)
        case ".conllu":
            return ConllConfig(path=path, word=2, tag=4)
        case ".conll" | ".iob" | ".bio":
            return detect_conll(path)
    if is_image_file(first_path) or is_idx(first_path):
        return make_image_source(path)
    if is_audio_file(first_path):
        return make_audio_source(path)
    if first_path != path:
        return DocumentsConfig(path=path)
    if is_table(path):
        return _detect_table(path, first_path, "tab")
    language = detect_language(path)
    return LinesConfig(source=path, languages=(language,) if language else ())


def is_table(path: str) -> bool:
    """Whether a file of any name is a table: every line at its start has the same number of tabs, and at least one."""
    try:
        lines = _read_first_lines(path)
    except CorpusError:  # the reader reports it
        return False
    return len(lines) >= MIN_ROWS and is_split(lines, "tab")


def _select_columns(paths: Sequence[str], columns: dict[str, Any]) -> AnySourceConfig:
    """Return the source of a table or of records with the columns that the user chose."""
    if len(paths) != 1:
        raise RegardError("--columns needs one table, not two files.", hint="Leave it out: line n of both is a pair.")
    path, first_path = paths[0], list_files(paths[0], Defects())[0]
    suffix, has_names = strip_compression(first_path).suffix.lower(), any(isinstance(c, str) for c in columns.values())
    if suffix in (".jsonl", ".ndjson", ".parquet"):
        kind = ParquetConfig if suffix == ".parquet" else JsonlConfig
        fields: dict[str, Any] = {role: str(name) for role, name in columns.items()}
        return kind(path=path, **fields)
    return TableConfig(path=path, delimiter=_detect_delimiter(first_path, suffix), header=has_names, **columns)


def make_image_source(path: str, task: str | None = None) -> ImagesConfig:
    """Return the source of a folder of images, of an idx or Parquet file, or of a table of images (see below)."""
    if is_image_table(path):
        return ImagesConfig(path=path, **_describe_table(path, None if task is None else task == "captioning"))
    return ImagesConfig(path=path, labels=find_idx_labels(path) if is_idx(path) else None)


def make_audio_source(path: str, task: str | None = None) -> AudioConfig:
    """Return the source of a folder of audio, or of a table of audio with their labels or texts (see below)."""
    if not is_audio_table(path):
        return AudioConfig(path=path)
    return AudioConfig(path=path, **_describe_table(path, None if task is None else task == "transcription"))


def _describe_table(path: str, is_text: bool | None) -> dict[str, Any]:
    """Return whether a table of files has a header, and whether its second column holds labels or texts.

    The task or the first line of the table (`file`, `label` or `text`) decide it; else few different short values are
    labels.
    """
    rows = [row.fields for row in islice(read_rows(path, "tab", Defects()), _MAX_ROWS)]
    rows = [fields for fields in rows if len(fields) == 2]  # the reader reports the others
    names = [fields.lower() for fields in rows[0]] if rows else []
    header = bool(names) and names[0] in _FILE_NAMES
    if is_text is None and header and names[1] in (*_LABEL_NAMES, *_TEXT_NAMES):
        is_text = names[1] in _TEXT_NAMES
    if is_text is None:
        is_text = not rows or judge_column([second for _, second in rows]) not in ("labels", "one value")
    return {"second": "text" if is_text else "label", "header": header}


def detect_conll(path: str) -> ConllConfig:
    """Return the source of a CoNLL file: the word in the first column, the tag in the last."""
    return ConllConfig(path=path, word=1, tag=_count_conll_columns(list_files(path, Defects())[0]))


def detect_documents(path: str) -> DocumentsConfig:
    """Return the source of running text, with the line that separates its documents if the first file has one.

    Marks such as <|endoftext|> on lines of their own separate documents. Blank lines do if the text between them is
    usually longer than a paragraph, or if the file is too large for one document.
    """
    source = DocumentsConfig(path=path)
    with suppress(CorpusError):  # the pass over the corpus reports it
        first = list_files(path, Defects())[0]
        lines, size = list[str](), 0
        for line in (line for block in iter_lines(first, Defects()) for line in block.lines):
            lines.append(line)
            size += len(line)
            if size > _SAMPLE_CHARACTERS:
                break
        blank_lines = Counter(line for line in lines if not line.strip())
        marks = Counter(line for line in lines if _DOCUMENT_MARK.fullmatch(line))
        if marks.total() > 1:
            return source.model_copy(update={"separator": marks.most_common(1)[0][0]})
        if not blank_lines:
            return source
        separator = blank_lines.most_common(1)[0][0]
        lengths = [sum(map(len, group)) for is_text, group in groupby(lines, lambda line: line != separator) if is_text]
        is_large = Path(first).exists() and Path(first).stat().st_size > MAX_LINE_BYTES
        if len(lengths) >= _MIN_DOCUMENTS and (is_large or median(lengths) >= _MIN_DOCUMENT_CHARACTERS):
            return source.model_copy(update={"separator": separator})
    return source


def detect_language(path: str) -> str | None:
    """The language code in a file name: train.tok.en.gz is English."""
    suffix = strip_compression(path).suffix[1:]
    language_match = _LANGUAGE.fullmatch(suffix)
    return suffix if language_match and language_match["base"] not in _NOT_LANGUAGES else None


def _detect_table(path: str, first_path: str, delimiter: Delimiter) -> TableConfig:
    rows = [row.fields for row in islice(read_rows(first_path, delimiter, Defects()), _MAX_ROWS)] or [[""]]
    names = rows[0]
    if any(_find_name(names, candidates) for candidates in (_SOURCE_NAMES, _LABEL_NAMES)) or _name_languages(rows):
        return TableConfig(path=path, delimiter=delimiter, header=True, **_detect_fields(names, first_path))
    return TableConfig(path=path, delimiter=delimiter, **choose_columns(rows, first_path))


def _detect_delimiter(path: str, suffix: str) -> Delimiter:
    """Return what separates the columns: tabs, or what the suffix says, unless only another delimiter splits all."""
    expected: Delimiter = "comma" if suffix == ".csv" else "tab"
    lines = [line for line in _read_first_lines(path) if line.strip()]
    candidates = ("tab", expected, *DELIMITERS) if len(lines) >= MIN_ROWS else ()
    return next((delimiter for delimiter in candidates if is_split(lines, delimiter)), expected)


def _read_first_lines(path: str) -> list[str]:
    return list(islice((line for block in iter_lines(path, Defects()) for line in block.lines), _MAX_ROWS))


def _name_languages(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row is a header with two languages ("en" or "English"): the fields below them are longer."""
    names, body_rows = rows[0], rows[1:]
    columns = [
        number
        for number, name in enumerate(names)
        if name.lower() in LANGUAGE_CODES or (len(name) == 2 and _find_language(name))
    ]
    fields = [row[number] for row in body_rows for number in columns if number < len(row)]
    return len(columns) == 2 and sum(len(field) > 3 for field in fields) > len(body_rows)


def _find_language(name: str) -> str | None:
    """Return the language code of a field, e.g. "de" for "de" or "German"."""
    # "id" is a record id far more often than Indonesian
    code = name if _LANGUAGE.fullmatch(name) and name != "id" else None
    return LANGUAGE_CODES.get(name.lower(), code)


def _find_name(names: Sequence[str], candidates: Sequence[str]) -> str | None:
    """The first candidate that occurs among the names, whatever its case; spelled as in `names`."""
    by_lower_name = {name.lower(): name for name in reversed(names)}
    return next((by_lower_name[name] for name in candidates if name in by_lower_name), None)


def _detect_fields(names: Sequence[str], path: str) -> dict[str, Any]:
    """Find the source, target and label fields by their names."""
    source, target, label = (
        _find_name(names, candidates) for candidates in (_SOURCE_NAMES, _TARGET_NAMES, _LABEL_NAMES)
    )
    if source is None and label is not None and len(names) == 2:
        source = next(name for name in names if name != label)
    if source is not None:
        return {"source": source, "target": target, "label": label}
    languages = {name: language for name in names if (language := _find_language(name)) is not None}
    if len(languages) == 2:
        source, target = languages
        return {"source": source, "target": target, "languages": tuple(languages.values())}
    raise RegardError(
        f"The text fields cannot be identified among: {', '.join(names)}.",
        location=path,
        hint="Choose them by name: --columns SOURCE,TARGET or --columns TEXT,label=LABEL.",
    )


def _read_first_keys(path: str) -> list[str]:
    for block in iter_lines(path, Defects()):
        for line in block.lines:
            if line.strip():
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):  # the reader reports the error with its line
                    record = None
                return list(record) if isinstance(record, dict) else ["source"]
    return ["source"]


def _read_parquet_columns(path: str) -> list[str]:
    parquet = import_optional("pyarrow.parquet", "formats", "Reading Parquet")
    pyarrow = import_optional("pyarrow", "formats", "Reading Parquet")
    with open_binary(path) as file:
        try:
            return list(parquet.read_schema(file).names)
        except pyarrow.ArrowException as error:
            message = f"The Parquet file is damaged: {error}."
            raise CorpusError(message, location=path, hint=PARQUET_FIX) from error


def _read_tmx_languages(path: str) -> tuple[str, ...]:
    """The first two languages of the first unit that has at least two."""
    languages: tuple[str, ...] = ()
    for unit in islice(read_units(path, Defects()), _MAX_ROWS):
        languages = tuple(dict.fromkeys(segment.language for segment in unit.segments))[:2]
        if len(languages) == 2:
            break
    return languages


def _count_conll_columns(path: str) -> int:
    """The number of columns in the first row; CoNLL has its tag in the last one."""
    for block in iter_lines(path, Defects()):
        for line in block.lines:
            if line.strip(" \t") and not line.startswith("#"):
                return len(line.split("\t") if "\t" in line else line.split())
    return 2
