"""Translated files: kept for a while for download, because LibreTranslate answers with an address."""

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

from regard.base.errors import RegardError
from regard.documents.format import FileDocument
from regard.documents.registry import find_format, find_suffix, is_text

KEPT_SECONDS = 1800.0
KEPT_BYTES = 100_000_000
MAX_LINE_BYTES = 100_000
LINE_SUFFIXES = (".md", ".markdown", ".srt", ".vtt")  # and text: other formats may have everything in one line
_LINE_ENDS = (b"\n", b"\r", b"<")  # lines, or tags


@dataclass(frozen=True)
class TranslatedFile:
    """A translated file."""

    name: str
    content: bytes
    media_type: str
    expires: float = 0.0

    @property
    def headers(self) -> dict[str, str]:
        """Response headers for a download."""
        return {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(self.name)}",
            "Cache-Control": "private, no-store",
        }


class TranslatedFiles:
    """The translated files that wait for their download. Their names cannot be guessed.

    >>> files = TranslatedFiles()
    >>> name = files.add(TranslatedFile("a.txt", b"A", "text/plain"), now=0.0)
    >>> files.find(name, now=60.0).content, files.find(name, now=KEPT_SECONDS), files.find("x")
    (b'A', None, None)
    """

    def __init__(self) -> None:
        self._files: OrderedDict[str, TranslatedFile] = OrderedDict()  # oldest first

    def add(self, file: TranslatedFile, now: float | None = None) -> str:
        """Keep a file; returns its name for `find`. The oldest files make room for it."""
        now = time.monotonic() if now is None else now
        name = secrets.token_urlsafe(24)
        self._files[name] = TranslatedFile(file.name, file.content, file.media_type, now + KEPT_SECONDS)
        while len(self._files) > 1 and (self._bytes > KEPT_BYTES or self._oldest.expires <= now):
            self._files.popitem(last=False)
        return name

    def find(self, name: str, now: float | None = None) -> TranslatedFile | None:
        """Return a file, or None if it does not exist any more."""
        file = self._files.get(name)
        return None if file is None or file.expires <= (time.monotonic() if now is None else now) else file

    @property
    def _oldest(self) -> TranslatedFile:
        return next(iter(self._files.values()))

    @property
    def _bytes(self) -> int:
        return sum(len(file.content) for file in self._files.values())


def read_document(name: str, content: bytes, *, max_lines: int) -> FileDocument:
    """Read an uploaded document.

    Args:
        name: The file name; the suffix names the format.
        content: The content of the file.
        max_lines: Maximum number of lines, and of tags.

    Raises:
        RegardError: The format is unknown, the file is damaged, or it has too many or too long lines.
    """
    document_format = find_format(name)
    if max(map(content.count, _LINE_ENDS)) > max_lines:  # before a list of them is made
        raise RegardError(f"The file has more than {max_lines:,} lines or tags.", hint="Split the file.")
    suffix = find_suffix(name)
    if suffix in LINE_SUFFIXES or is_text(suffix):
        length = max(map(len, content.split(b"\n")))
        if length > MAX_LINE_BYTES:
            raise RegardError(
                f"A line has {length:,} bytes; the maximum is {MAX_LINE_BYTES:,}.", hint="Break the line."
            )
    return document_format.read(content)


def make_output_name(name: str) -> str:
    r"""Return the name of the translated file.

    >>> make_output_name("C:\\Docs\\letter.docx")
    'letter.translated.docx'
    """
    path = PurePosixPath(PurePosixPath(name.replace("\\", "/")).name)
    return f"{path.stem}.translated{path.suffix}"
