r"""Corpus readers: `read` streams the examples of a source, whatever its format.

Each format has a module here. `text_files` opens, decompresses and splits files for all of them; `detect` finds out the
format of a path.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from regard.config.sources import LinesConfig
>>> with TemporaryDirectory() as folder:
...     path = Path(folder, "a.en")
...     bytes_written = path.write_bytes(b"one\r\ntwo\n")
...     defects = Defects()
...     [example.source for example in read(LinesConfig(source=str(path)), defects)]
['one', 'two']
>>> dict(defects.counts)
{'CRLF line end, CR removed': 1}
"""

from collections.abc import Iterator
from typing import assert_never

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
from regard.data.example import Defects, Example
from regard.data.readers.audio import read_audio
from regard.data.readers.conll import read_conll
from regard.data.readers.documents import read_documents
from regard.data.readers.gettext import read_gettext
from regard.data.readers.images import read_images
from regard.data.readers.jsonl import read_jsonl
from regard.data.readers.lines import read_lines
from regard.data.readers.parquet import read_parquet
from regard.data.readers.table import read_table
from regard.data.readers.tmx import read_tmx

__all__ = ["read"]


def read(source: AnySourceConfig, defects: Defects) -> Iterator[Example]:
    """Stream the examples of a source.

    Memory use does not grow with the size of the files.

    Args:
        source: The files and their format, as in a run file.
        defects: Counts every irregularity that the reader tolerates.

    Raises:
        CorpusError: A file is missing, damaged or not in the stated format; the error names the file and line.
    """
    match source:
        case LinesConfig():
            return read_lines(source, defects)
        case TableConfig():
            return read_table(source, defects)
        case JsonlConfig():
            return read_jsonl(source, defects)
        case ParquetConfig():
            return read_parquet(source, defects)
        case TmxConfig():
            return read_tmx(source, defects)
        case GettextConfig():
            return read_gettext(source, defects)
        case ConllConfig():
            return read_conll(source, defects)
        case DocumentsConfig():
            return read_documents(source, defects)
        case ImagesConfig():
            return read_images(source, defects)
        case AudioConfig():
            return read_audio(source, defects)
        case _:
            assert_never(source)
