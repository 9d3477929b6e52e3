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

from collections.abc import Callable, Iterator
from typing import Any

from regard.config.sources import AnySourceConfig
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
READERS: dict[str, Callable[[Any, Defects], Iterator[Example]]] = {  # by the kind of their settings
    "lines": read_lines,
    "table": read_table,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "tmx": read_tmx,
    "gettext": read_gettext,
    "conll": read_conll,
    "documents": read_documents,
    "images": read_images,
    "audio": read_audio,
}


def read(source: AnySourceConfig, defects: Defects) -> Iterator[Example]:
    """Stream the examples of a source.

    Memory use does not grow with the size of the files.

    Args:
        source: The files and their format, as in a run file.
        defects: Counts every irregularity that the reader tolerates.

    Raises:
        CorpusError: A file is missing, damaged or not in the stated format; the error names the file and line.
    """
    return READERS[source.kind](source, defects)
