r"""Plain text: one segment per line.

>>> document = TextFormat().read(b"One.\r\n\r\n  Two.\r\n")
>>> [segment.text for segment in document.segments]
['One.', 'Two.']
>>> document.write([Segment("Eins."), Segment("Zwei.")])
b'Eins.\r\n\r\n  Zwei.\r\n'
"""

import re

from regard.base.errors import RegardError
from regard.documents.format import decode_utf8
from regard.documents.offsets import OffsetDocument, Slot
from regard.documents.segment import Segment

MAX_LENGTH = 1_000_000  # characters of a line
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")


class TextFormat:
    """Plain text. White space around the text of a line is preserved."""

    suffixes = (".txt",)
    media_type = "text/plain; charset=utf-8"

    def read(self, data: bytes) -> OffsetDocument:
        """Read lines."""
        mark, text = decode_utf8(data)
        slots = list[Slot]()
        for number, line in enumerate(_LINE.finditer(text), 1):
            if line.end() - line.start() > MAX_LENGTH:  # before it is copied
                message = f"A line has more than {MAX_LENGTH:,} characters."
                raise RegardError(message, location=f"line {number}", hint="Split the line.")
            content = line[1].strip()
            if content:
                start = line.start() + line[1].index(content)
                segment = Segment(content, location=f"line {number}")
                slots.append(Slot(start, start + len(content), segment, escape=join_breaks))
        return OffsetDocument(mark, text, slots)


def join_breaks(text: str) -> str:
    r"""Return a translation on one line, because a line break would start another segment.

    >>> join_breaks(" one \n\n two\r\n")
    ' one two '
    """
    first, *others = re.split(r"[\r\n\x85\u2028\u2029]", text)  # a pattern with the space around takes quadratic time
    if not others:
        return text
    middle = [part for part in map(str.strip, others[:-1]) if part]
    return " ".join([first.rstrip(), *middle, others[-1].lstrip()])
