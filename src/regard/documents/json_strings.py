r"""JSON string tables: the strings that are values are translated; keys, numbers and formatting are preserved.

>>> document = JsonFormat().read(b'{"menu" : {"open": "Open\\u2026", "size": 3}}')
>>> [(segment.text, segment.location) for segment in document.segments]
[('Open…', 'menu.open')]
>>> from regard.documents.segment import Segment
>>> document.write([Segment("Öffnen…")])
b'{"menu" : {"open": "\\u00d6ffnen\\u2026", "size": 3}}'
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.parsing import parse_json
from regard.documents.format import decode_utf8
from regard.documents.offsets import OffsetDocument
from regard.documents.strings import has_words, make_slot

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],]')
_NOTES = {"description", "placeholders"}  # for translators, next to a "message" (browser extensions)


class JsonFormat:
    """Values of JSON objects and lists. Keys that start with @ (Flutter) hold notes, which are not translated."""

    suffixes = (".json",)
    media_type = "application/json"

    def read(self, data: bytes) -> OffsetDocument:
        """Read the strings."""
        mark, text = decode_utf8(data)
        if len(data) > limits.DOCUMENT:
            raise _error(f"The file has {len(data):,} bytes, more than {limits.DOCUMENT:,}", "Split the file.")
        try:
            parse_json(data[len(mark) :])
        except ValueError as error:
            raise _error(
                f"Not a JSON file: {str(error)[:200]}", "Check the file with `python -m json.tool`."
            ) from error
        values = list(_read_values(text))
        messages = {value.path[:-1] for value in values if value.path[-1:] == ("message",)}
        quote = partial(json.dumps, ensure_ascii=text.isascii() and "\\u" in text)
        slots = [
            make_slot(value.start, value.end, value.text, ".".join(map(str, value.path)), quote)
            for value in values
            if has_words(value.text) and not _is_note(value.path, messages)
        ]
        return OffsetDocument(mark, text, slots)


class _Value(NamedTuple):
    path: tuple[str | int, ...]
    start: int
    end: int
    text: str


def _read_values(text: str) -> Iterator[_Value]:
    """Yield the strings of a valid JSON text that are not keys."""
    path = list[str | int | None]()  # of each open object or list: the key, or None before it; the index
    for match in _TOKEN.finditer(text):
        part = match[0]
        if part[0] == '"':
            value = json.loads(part)
            if path and path[-1] is None:
                path[-1] = value
            else:
                yield _Value(tuple(key for key in path if key is not None), *match.span(), value)
        elif part in "{[":
            path.append(None if part == "{" else 0)
        elif part in "}]":
            path.pop()
        else:
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else None


def _is_note(path: tuple[str | int, ...], messages: set[tuple[str | int, ...]]) -> bool:
    if any(isinstance(key, str) and key.startswith("@") for key in path):
        return True
    return any(key in _NOTES and path[:depth] in messages for depth, key in enumerate(path))


def _error(message: str, hint: str) -> RegardError:
    return RegardError(f"{message}.", location="JSON", hint=hint)
