"""Reference writers: every format written without the readers' help, so that what is read can be compared."""

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

from regard.config.run import AnySource, Conll, Documents, Gettext, Jsonl, Lines, Parquet, Table, Tmx
from regard.data.example import CorpusError, Defects, Example
from regard.data.readers import read

Row = tuple[str, str]
SEPARATOR = "<<< next >>>"
MEMORY_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header srclang="en"/>\n<body>\n'


@dataclass(frozen=True)
class Form:
    """A format: its bytes for given rows, the source that reads them, and on which line a row stands."""

    name: str
    suffix: str
    encode: Callable[[Sequence[Row]], bytes]
    source: Callable[[str], AnySource]
    line: Callable[[int], int]  # of row i, from 0
    single: bool = False  # one text a row, no target

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        path = folder / f"{self.name}{self.suffix}"
        path.write_bytes(self.encode(rows))
        return path

    def expected(self, rows: Sequence[Row]) -> list[Row]:
        return [(text, "") for text, _ in rows] if self.single else list(rows)

    def __str__(self) -> str:
        return self.name


def rows_of(examples: Sequence[Example]) -> list[Row]:
    return [(example.source, example.target or " ".join(example.tags or ())) for example in examples]


def read_all(source: AnySource) -> tuple[list[Example], Defects]:
    defects = Defects()
    return list(read(source, defects)), defects


def refused(source: AnySource) -> tuple[list[Row], CorpusError]:
    """What a reader gives before it refuses to go on, and what it says then."""
    given: list[Row] = []
    try:
        for example in read(source, Defects()):
            given += rows_of([example])
    except CorpusError as error:
        return given, error
    raise AssertionError(f"nothing was refused, {len(given)} examples were read")


def lines(rows: Sequence[Row]) -> bytes:
    return "".join(f"{text}\n" for text, _ in rows).encode()


def tabs(rows: Sequence[Row]) -> bytes:
    return "".join(f"{text}\t{target}\n" for text, target in rows).encode()


def commas(rows: Sequence[Row]) -> bytes:
    return "".join(f"{text},{target}\n" for text, target in rows).encode()


def quoted_commas(rows: Sequence[Row]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


def objects(rows: Sequence[Row]) -> bytes:
    records = ({"source": text, "target": target} for text, target in rows)
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def raw_objects(rows: Sequence[Row]) -> bytes:
    return "".join(f'{{"source": "{text}", "target": "{target}"}}\n' for text, target in rows).encode()


def escaped_objects(rows: Sequence[Row]) -> bytes:
    return "".join(json.dumps({"source": text, "target": target}) + "\n" for text, target in rows).encode()


def columns(rows: Sequence[Row]) -> bytes:
    names = {"source": [text for text, _ in rows], "target": [target for _, target in rows]}
    table = pyarrow.table({name: pyarrow.array(texts, pyarrow.string()) for name, texts in names.items()})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink, row_group_size=2 if len(rows) < 100 else 5000)
    return sink.getvalue()


def memory(rows: Sequence[Row]) -> bytes:
    """One unit a line, from line 4 on."""

    def segment(language: str, text: str) -> str:
        return f'<tuv xml:lang="{language}"><seg>{escape(text, {chr(13): "&#13;"})}</seg></tuv>'

    body = "".join(f"<tu>{segment('en', text)}{segment('de', target)}</tu>\n" for text, target in rows)
    return f"{MEMORY_HEAD}{body}</body></tmx>\n".encode()


def raw_memory(rows: Sequence[Row]) -> bytes:
    return memory(rows).replace(b"&#13;", b"\r")


def catalogue(rows: Sequence[Row]) -> bytes:
    """Three lines an entry, from line 4 on."""

    def string(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    return (head + "".join(f"msgid {string(text)}\nmsgstr {string(target)}\n\n" for text, target in rows)).encode()


def binary_catalogue(rows: Sequence[Row]) -> bytes:
    """A header, then an entry a row: row i is entry i + 2."""
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


def sentences(rows: Sequence[Row]) -> bytes:
    """Each row a sentence of one word, with a blank line after it."""
    return "".join(f"{text}\t{target}\n\n" for text, target in rows).encode()


def documents(rows: Sequence[Row]) -> bytes:
    return f"{SEPARATOR}\n".join(f"{text}\n" for text, _ in rows).encode()


def _pair_source(path: str) -> AnySource:
    return Lines(source=path, target=path.replace("pairs.en", "pairs.de"))


class Pairs(Form):
    """Two aligned files."""

    def write(self, folder: Path, rows: Sequence[Row]) -> Path:
        (folder / "pairs.de").write_bytes(lines([(target, "") for _, target in rows]))
        return super().write(folder, rows)


LANGUAGES = ("en", "de")
FORMS = [
    Form("lines", ".txt", lines, lambda path: Lines(source=path), lambda i: i + 1, single=True),
    Pairs("pairs", ".en", lines, _pair_source, lambda i: i + 1),
    Form("tsv", ".tsv", tabs, lambda path: Table(path=path, target=2), lambda i: i + 1),
    Form("csv", ".csv", commas, lambda path: Table(path=path, delimiter="comma", target=2), lambda i: i + 1),
    Form("quoted", ".csv", quoted_commas, lambda path: Table(path=path, delimiter="comma", target=2), lambda i: i + 1),
    Form("json", ".jsonl", raw_objects, lambda path: Jsonl(path=path, target="target"), lambda i: i + 1),
    Form("escaped", ".jsonl", escaped_objects, lambda path: Jsonl(path=path, target="target"), lambda i: i + 1),
    Form("parquet", ".parquet", columns, lambda path: Parquet(path=path, target="target"), lambda i: i + 1),
    Form("tmx", ".tmx", raw_memory, lambda path: Tmx(path=path, languages=LANGUAGES), lambda i: i + 4),
    Form("po", ".po", catalogue, lambda path: Gettext(path=path), lambda i: 3 * i + 4),
    Form("mo", ".mo", binary_catalogue, lambda path: Gettext(path=path), lambda i: i + 2),
    Form("conll", ".conll", sentences, lambda path: Conll(path=path), lambda i: 2 * i + 1),
    Form(
        "documents",
        ".md",
        documents,
        lambda path: Documents(path=path, separator=SEPARATOR),
        lambda i: 2 * i + 1,
        single=True,
    ),
]
BY_NAME = {form.name: form for form in FORMS}
