r"""gettext catalogs (po): messages without a translation get one; all other lines are preserved.

Empty translations and those of fuzzy entries are written. Comments, flags and obsolete entries stay as they are.

>>> document = PoFormat().read(b'#, fuzzy\nmsgid "Open\\n"\nmsgstr "Zu\\n"\n')
>>> from regard.documents.segment import Segment
>>> document.write([Segment("Auf")])
b'#, fuzzy\nmsgid "Open\\n"\nmsgstr "Auf\\n"\n'
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from regard.base.errors import RegardError
from regard.documents.format import decode_utf8
from regard.documents.offsets import OffsetDocument
from regard.documents.strings import StringSlot, has_words, make_slot

_LINE = re.compile(
    r"[ \t]*(?:(?P<comment>#[^\r\n]*)|(?:(?P<keyword>msgctxt|msgid_plural|msgid|msgstr(?:\[\d{1,2}\])?)[ \t]*)?"
    r'(?P<string>"(?:[^"\\\r\n]|\\.)*")[ \t]*)?(?P<end>\r\n|\r|\n|\Z)'
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})
_CHARSET = re.compile(r"charset=([\w-]+)")


@dataclass
class _String:
    """The value of a keyword: the range from its first to its last quotation mark."""

    start: int
    end: int
    line: int
    parts: list[str]
    """The text of each line: adding it to the text of the lines before would take quadratic time."""

    @property
    def text(self) -> str:
        return "".join(self.parts)


@dataclass
class _CatalogEntry:
    is_fuzzy: bool = False
    strings: dict[str, _String] = field(default_factory=dict)


class PoFormat:
    """gettext catalogs."""

    suffixes = (".po", ".pot")
    media_type = "text/x-gettext-translation; charset=utf-8"

    def read(self, data: bytes) -> OffsetDocument:
        """Read the messages that need a translation."""
        mark, text = decode_utf8(data)
        slots = [slot for entry in _read_entries(text) for slot in _make_slots(entry, text)]
        return OffsetDocument(mark, text, slots)


def _make_slots(entry: _CatalogEntry, text: str) -> Iterator[StringSlot]:
    message, plural = entry.strings.get("msgid"), entry.strings.get("msgid_plural")
    forms = [string for keyword, string in entry.strings.items() if keyword.startswith("msgstr")]
    if message is None or not forms:
        line = min((string.line for string in entry.strings.values()), default=1)
        raise _error("The entry has no msgid or no msgstr", line)
    if not message.text:  # the header
        charset = _CHARSET.search(forms[0].text)
        if (
            "msgctxt" not in entry.strings
            and charset
            and charset[1].lower() not in ("utf-8", "utf8", "charset", "ascii")
        ):
            raise _error(
                f"The catalog is not UTF-8 but {charset[1]}", message.line, "Convert it with `msgconv -t UTF-8`."
            )
        return
    break_match = re.search(r"\r\n|\r|\n", text)
    quote = partial(_quote, line_break=break_match[0] if break_match else "\n")
    for number, form in enumerate(forms):
        if form.text and not entry.is_fuzzy:
            continue
        source = plural if plural and (number or len(forms) == 1) else message
        if has_words(source.text):
            yield make_slot(form.start, form.end, source.text, f"line {form.line}", quote, holds_source=False)


def _read_entries(text: str) -> Iterator[_CatalogEntry]:
    entry, current, line, position = _CatalogEntry(), None, 0, 0
    while position < len(text):
        line += 1
        match = _LINE.match(text, position)
        if match is None:
            raise _error("Not a line of a PO file", line)
        position = match.end()
        keyword, string, comment = match["keyword"], match["string"], match["comment"]
        if keyword is None and string is not None:
            if current is None:
                raise _error("A string without a keyword", line)
            current.end = match.end("string")
            current.parts.append(_unquote(string))
            continue
        current = None
        ends_entry = any(name.startswith("msgstr") for name in entry.strings)
        if ends_entry and (keyword is None or not keyword.startswith("msgstr")):
            yield entry
            entry = _CatalogEntry()
        if keyword is not None:
            if keyword in entry.strings:
                raise _error(f"A second {keyword} in the same entry", line)
            current = _String(match.start("string"), match.end("string"), line, [_unquote(string)])
            entry.strings[keyword] = current
        elif comment is not None and comment.startswith("#,"):
            entry.is_fuzzy |= "fuzzy" in (flag.strip() for flag in comment[2:].split(","))
    if entry.strings:
        yield entry


def _unquote(string: str) -> str:
    return _ESCAPE.sub(_unescape, string[1:-1]) if "\\" in string else string[1:-1]


def _unescape(match: re.Match[str]) -> str:
    hexadecimal, octal, character = match.groups()
    if character is None:
        return chr(int(hexadecimal, 16) if hexadecimal else int(octal, 8))
    return _ESCAPES.get(character, character)


def _quote(text: str, line_break: str) -> str:
    r"""Write a string, with one line per line of the text.

    >>> print(_quote("a\nb", "\n"))
    ""
    "a\n"
    "b"
    """
    lines = [f'"{line.translate(_WRITTEN)}"' for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    return (line_break if len(lines) > 1 else "").join(['""', *lines] if len(lines) > 1 else lines or ['""'])


def _error(message: str, line: int, hint: str = "Run `msgfmt --check` for details.") -> RegardError:
    return RegardError(f"{message}.", location=f"line {line}", hint=hint)
