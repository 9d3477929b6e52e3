"""What a file format provides: segments to translate, and the file with their translations."""

import codecs
from collections.abc import Sequence
from typing import Protocol

from regard.base.errors import RegardError
from regard.documents.segment import Segment


class FileDocument(Protocol):
    """The content of a file."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, in the order in which a reader reads them."""

    def write(self, translations: Sequence[Segment]) -> bytes:
        """Return the file with each segment replaced.

        Everything else is preserved: a file written with its own segments is equal byte for byte, or as its format's
        library reads it if the format compresses or encodes its parts.

        Args:
            translations: One per segment, with the same span ids, in any order that nests.
        """


class Format(Protocol):
    """A file format."""

    suffixes: tuple[str, ...]
    """In lower case, with the dot."""
    media_type: str

    def read(self, data: bytes) -> FileDocument:
        """Read a file.

        Raises:
            RegardError: The file is damaged, or not of this format.
        """


def decode_utf8(data: bytes) -> tuple[bytes, str]:
    """Return the byte order mark, if there is one, and the text.

    Raises:
        RegardError: The data are not UTF-8.
    """
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        return mark, data[len(mark) :].decode("utf-8")
    except UnicodeDecodeError as error:
        raise RegardError(
            f"The file is not UTF-8: {error.reason}.",
            location=f"byte {len(mark) + error.start:,}",
            hint="Save it as UTF-8.",
        ) from None
