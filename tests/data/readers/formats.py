"""Reference writers: they write every format without the readers, to compare with what is read."""

import csv
import io
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow
import pyarrow.parquet

from regard.config.sources import (
    AnySourceConfig,
    ConllConfig,
    DocumentsConfig,
    GettextConfig,
    JsonlConfig,
    LinesConfig,
    ParquetConfig,
    TableConfig,
    TmxConfig,
)
from regard.data.example import CorpusError, Defects, Example
from regard.data.readers import read

Row = tuple[str, str]
SEPARATOR = "<<< next >>>"
TMX_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header srclang="en"/>\n<body>\n'


@dataclass(frozen=True)
class Format:
    """A format: encodes rows to bytes, makes the source that reads them, and knows the line of each row."""

    name: str
    suffix: str
    encode: Callable[[Sequence[Row]], bytes]
    source: Callable[[str], AnySourceConfig]
    line_of_row: Callable[[int], int]  # of row i, from 0
    is_single: bool = False  # one text per row, no target

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        path = folder / f"{self.name}{self.suffix}"
        path.write_bytes(self.encode(rows))
        return path

    def expected_rows(self, rows: Sequence[Row]) -> list[Row]:
        return [(text, "") for text, _ in rows] if self.is_single else list(rows)

    def __str__(self) -> str:
        return self.name


def to_rows(examples: Sequence[Example]) -> list[Row]:
    return [(example.source, example.target or " ".join(example.tags or ())) for example in examples]


def read_all(source: AnySourceConfig) -> tuple[list[Example], Defects]:
    defects = Defects()
    return list(read(source, defects)), defects


def read_until_error(source: AnySourceConfig) -> tuple[list[Row], CorpusError]:
    """The rows before a reader raises an error, and the error."""
    rows: list[Row] = []
    try:
        for example in read(source, Defects()):
            rows += to_rows([example])
    except CorpusError as error:
        return rows, error
    raise AssertionError(f"no error; {len(rows)} examples were read")


def encode_lines(rows: Sequence[Row]) -> bytes:
    return "".join(f"{text}\n" for text, _ in rows).encode()


def encode_tabs(rows: Sequence[Row]) -> bytes:
    return "".join(f"{text}\t{target}\n" for text, target in rows).encode()


def encode_commas(rows: Sequence[Row]) -> bytes:
    return "".join(f"{text},{target}\n" for text, target in rows).encode()


def encode_quoted_commas(rows: Sequence[Row]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


def encode_jsonl(rows: Sequence[Row]) -> bytes:
    records = ({"source": text, "target": target} for text, target in rows)
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def encode_raw_jsonl(rows: Sequence[Row]) -> bytes:
    return "".join(f'{{"source": "{text}", "target": "{target}"}}\n' for text, target in rows).encode()


def encode_escaped_jsonl(rows: Sequence[Row]) -> bytes:
    return "".join(json.dumps({"source": text, "target": target}) + "\n" for text, target in rows).encode()


def encode_parquet(rows: Sequence[Row]) -> bytes:
    names = {"source": [text for text, _ in rows], "target": [target for _, target in rows]}
    table = pyarrow.table({name: pyarrow.array(texts, pyarrow.string()) for name, texts in names.items()})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink, row_group_size=2 if len(rows) < 100 else 5000)
    return sink.getvalue()


def encode_tmx(rows: Sequence[Row]) -> bytes:
    """One unit per line, from line 4 on."""

    def segment(language: str, text: str) -> str:
        return f'<tuv xml:lang="{language}"><seg>{escape(text, {chr(13): "&#13;"})}</seg></tuv>'

    body = "".join(f"<tu>{segment('en', text)}{segment('de', target)}</tu>\n" for text, target in rows)
    return f"{TMX_HEAD}{body}</body></tmx>\n".encode()


def encode_raw_tmx(rows: Sequence[Row]) -> bytes:
    return encode_tmx(rows).replace(b"&#13;", b"\r")


def encode_po(rows: Sequence[Row]) -> bytes:
    """Three lines per entry, from line 4 on."""

    def string(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    return (head + "".join(f"msgid {string(text)}\nmsgstr {string(target)}\n\n" for text, target in rows)).encode()


def encode_mo(rows: Sequence[Row]) -> bytes:
    """A header, then one entry per row: row i is entry i + 2."""
    texts = [("", "Content-Type: text/plain; charset=UTF-8\n"), *rows]
    start = 28 + 16 * len(texts)
    tables, strings = [b"", b""], b""
    for side in (0, 1):
        for row in texts:
            text = row[side].encode()
            tables[side] += struct.pack("<2I", len(text), start + len(strings))
            strings += text + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(texts), 28, 28 + 8 * len(texts), 0, start)
    return head + tables[0] + tables[1] + strings


def encode_conll(rows: Sequence[Row]) -> bytes:
    """Each row a sentence of one word, with a blank line after it."""
    return "".join(f"{text}\t{target}\n\n" for text, target in rows).encode()


def encode_documents(rows: Sequence[Row]) -> bytes:
    return f"{SEPARATOR}\n".join(f"{text}\n" for text, _ in rows).encode()


def _make_pair_source(path: str) -> AnySourceConfig:
    return LinesConfig(source=path, target=path.replace("pairs.en", "pairs.de"))


class PairFormat(Format):
    """Two aligned files."""

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        (folder / "pairs.de").write_bytes(encode_lines([(target, "") for _, target in rows]))
        return super().write(folder, rows)


LANGUAGES = ("en", "de")
FORMATS = [
    Format("lines", ".txt", encode_lines, lambda path: LinesConfig(source=path), lambda i: i + 1, is_single=True),
    PairFormat("pairs", ".en", encode_lines, _make_pair_source, lambda i: i + 1),
    Format("tsv", ".tsv", encode_tabs, lambda path: TableConfig(path=path, target=2), lambda i: i + 1),
    Format(
        "csv", ".csv", encode_commas, lambda path: TableConfig(path=path, delimiter="comma", target=2), lambda i: i + 1
    ),
    Format(
        "quoted",
        ".csv",
        encode_quoted_commas,
        lambda path: TableConfig(path=path, delimiter="comma", target=2),
        lambda i: i + 1,
    ),
    Format("json", ".jsonl", encode_raw_jsonl, lambda path: JsonlConfig(path=path, target="target"), lambda i: i + 1),
    Format(
        "escaped", ".jsonl", encode_escaped_jsonl, lambda path: JsonlConfig(path=path, target="target"), lambda i: i + 1
    ),
    Format(
        "parquet", ".parquet", encode_parquet, lambda path: ParquetConfig(path=path, target="target"), lambda i: i + 1
    ),
    Format("tmx", ".tmx", encode_raw_tmx, lambda path: TmxConfig(path=path, languages=LANGUAGES), lambda i: i + 4),
    Format("po", ".po", encode_po, lambda path: GettextConfig(path=path), lambda i: 3 * i + 4),
    Format("mo", ".mo", encode_mo, lambda path: GettextConfig(path=path), lambda i: i + 2),
    Format("conll", ".conll", encode_conll, lambda path: ConllConfig(path=path), lambda i: 2 * i + 1),
    Format(
        "documents",
        ".md",
        encode_documents,
        lambda path: DocumentsConfig(path=path, separator=SEPARATOR),
        lambda i: 2 * i + 1,
        is_single=True,
    ),
]
BY_NAME = {form.name: form for form in FORMATS}
