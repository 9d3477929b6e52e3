"""HTML: the texts between block-level tags are segments, inline tags are spans, everything else keeps its bytes.

The splitter works on offsets, because lxml and selectolax rewrite markup. It never fails: an inline tag without a
partner, or one that crosses another, is a point.

>>> from regard.documents.segment import Span
>>> document = HtmlFormat().read(b'<h1 title="Top">A <b>red</b> caf&eacute;</h1><pre>x</pre>')
>>> [(segment.text, len(segment.spans)) for segment in document.segments]
[('A red café', 1), ('Top', 0)]
>>> document.write([Segment("Un café rouge & bon", (Span(8, 13, 0, "pair"),)), document.segments[1]]).decode()
'<h1 title="Top">Un café <b>rouge</b> &amp; bon</h1><pre>x</pre>'
"""

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape, unescape
from typing import Literal, NamedTuple

from regard.base import limits
from regard.base.errors import RegardError
from regard.documents.format import decode_utf8
from regard.documents.inline import Atom, balance, build_segment, trim
from regard.documents.offsets import OffsetDocument, Slot
from regard.documents.segment import Segment
from regard.documents.strings import has_words

MAX_TAGS = 250_000  # a tag takes about 0.5 KB of memory
PAIRS = frozenset(
    """
    a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q s small span strike strong sub sup
    time u
    """.split()  # noqa: SIM905 - one word per name
)
_POINTS = frozenset({"br", "img", "input", "wbr"})
PROTECTED = frozenset({"code", "kbd", "samp", "tt", "var"})
_COPIED = frozenset({"math", "script", "style", "svg", "textarea"})
_INLINE = PAIRS | _POINTS | PROTECTED | _COPIED | {""}  # all other elements bound segments
_ATTRIBUTES = ("alt", "aria-label", "placeholder", "title")
_MARKUP = re.compile(r"<(?:(/?)([a-zA-Z][^\s/>]*)|[/!?])")
_CLOSING = {  # of the elements that are copied with their content
    name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in sorted(PROTECTED | _COPIED | {"pre"})
}
_HAS_ATTRIBUTE = re.compile("|".join(_ATTRIBUTES), re.IGNORECASE)
_HAS_LOCK = re.compile("translate", re.IGNORECASE)  # translate="no" or class="notranslate"
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]++)(?:\s*+=\s*+("[^"]*"|'[^']*'|[^\s"'>]+))?""")
_INNER_TAG = re.compile(r"<[^<>]*+>")
_BREAK = re.compile(r"<br\b", re.IGNORECASE)
_BLANKS = " \t\r\n\f"
_SPACE = re.compile(rf"[{_BLANKS}]+")


class HtmlFormat:
    """HTML pages. Elements with translate="no" or the class notranslate are copied."""

    suffixes = (".html", ".htm", ".xhtml")
    media_type = "text/html; charset=utf-8"

    def read(self, data: bytes) -> "HtmlDocument":
        """Read a page, or a part of one."""
        if len(data) > limits.DOCUMENT or data.count(b"<") > MAX_TAGS:
            raise RegardError(
                f"The page has more than {limits.DOCUMENT:,} bytes or {MAX_TAGS:,} tags.",
                location="HTML",
                hint="Split the page.",
            )
        return HtmlDocument(*decode_utf8(data))


class HtmlDocument:
    """A page: the segments of its texts, then those of its attributes."""

    def __init__(self, mark: bytes, html: str) -> None:
        self._mark = mark
        self._texts = OffsetDocument(b"", html, read_texts(html))
        self._attributes = OffsetDocument(b"", html, _read_attributes(html))
        self.segments = [*self._texts.segments, *self._attributes.segments]

    def write(self, translations: Sequence[Segment]) -> bytes:
        """Return the page with each segment replaced."""
        count, texts = len(self._texts.segments), self._texts
        if self._attributes.segments:  # the tag of an attribute may be inside a text, so it changes first
            html = self._attributes.write(translations[count:]).decode()
            texts = OffsetDocument(b"", html, read_texts(html))
        return self._mark + texts.write(translations[:count])


def read_texts(html: str, first_line: int = 1) -> list[Slot]:
    """Return the texts of a page that have words."""
    breaks = [match.start() for match in re.finditer("\n", html)]
    slots, atoms, was_break = list[Slot](), list[tuple[Atom, str]](), False
    for part in [*_read_parts(html), _Part("copied", len(html), len(html), "html")]:
        raw = html[part.start : part.end]
        is_break = part.name == "br"
        if part.name in _INLINE and not (is_break and was_break):  # two line breaks are an empty line
            atoms.append((_make_atom(part, raw), f"tag {part.name}"))
        else:
            slots += _make_slot(html, balance(atoms), breaks, first_line)
            atoms = []
        was_break = is_break or (was_break and not raw.strip())
    return slots


class _Part(NamedTuple):
    """A text, a tag, or something that is copied whole."""

    kind: Literal["text", "open", "close", "copied"]
    start: int
    end: int
    name: str = ""
    """Of the element; "" of comments and texts."""


def _read_parts(html: str) -> Iterator[_Part]:
    """Yield the parts of a page; an element that is not to be translated is one part."""
    parts = list(_split(html))
    if not _HAS_LOCK.search(html):
        yield from parts
        return
    closing, opened = dict[int, int](), defaultdict[str, list[int]](list)
    for index, part in enumerate(parts):
        if part.kind == "open":
            opened[part.name].append(index)
        elif part.kind == "close" and opened[part.name]:
            closing[opened[part.name].pop()] = index
    index = 0
    while index < len(parts):
        part, first = parts[index], index
        if part.kind == "open" and part.name not in _POINTS and _is_locked(html[part.start : part.end]):
            blocks = (other for other in range(first + 1, len(parts)) if parts[other].name not in _INLINE)
            index = (
                closing[first] if first in closing else next(blocks, len(parts)) - 1
            )  # not closed: to the next block
            part = _Part("copied", part.start, parts[index].end, "code" if part.name in _INLINE else part.name)
        yield part
        index += 1


def _split(html: str) -> Iterator[_Part]:
    finder, text_start, position = _Finder(html), 0, 0
    while (start := html.find("<", position)) >= 0:
        if not (match := _MARKUP.match(html, start)):
            position = start + 1  # part of the text: 5 < 6
            continue
        name, end = (match[2] or "").lower(), -1
        kind: Literal["open", "close", "copied"] = "close" if match[1] else "open" if name else "copied"
        if html.startswith("<!--", start):
            end = finder.find("-->", start + 4)
        elif html.startswith("<![CDATA[", start):
            end = finder.find("]]>", start + 9)
        elif kind == "open" and name in _CLOSING and (tag_end := _find_tag_end(finder, match.end())) >= 0:
            end = finder.find(name, tag_end)
            kind = "copied" if end >= 0 else "open"
        if end < 0:
            end = _find_tag_end(finder, start + 1)
        if end < 0:
            break  # no further tag, so the rest is text
        if start > text_start:
            yield _Part("text", text_start, start)
        yield _Part(kind, start, end, name)
        text_start = position = end
    if text_start < len(html):
        yield _Part("text", text_start, len(html))


class _Finder:
    """Finds the ends of markup; caches results, so the total search time is linear."""

    def __init__(self, html: str) -> None:
        self.html = html
        self._found: dict[str, tuple[int, int]] = {}  # start and end of the next match; -1 if there is none

    def find(self, text: str, position: int) -> int:
        """Return the end of the next `text` (or closing tag, for a name) at or after a position, or -1."""
        start, end = self._found.get(text, (0, 0))
        if end >= 0 and start < position:
            if text in _CLOSING:
                match = _CLOSING[text].search(self.html, position)
                start, end = match.span() if match else (-1, -1)
            else:
                start = self.html.find(text, position)
                end = start + len(text) if start >= 0 else -1
            self._found[text] = start, end
        return end


def _find_tag_end(finder: _Finder, position: int) -> int:
    """Return the end of the tag at a position, after a > outside quoted values, or -1."""
    while (end := finder.find(">", position)) >= 0:
        quotes = [finder.find(quote, position) for quote in "\"'"]
        after_quote = min((after for after in quotes if 0 <= after < end), default=-1)
        if after_quote < 0:
            return end
        quote, before = finder.html[after_quote - 1], finder.html[max(position, after_quote - 9) : after_quote - 1]
        closing = finder.find(quote, after_quote) if before.rstrip().endswith("=") else after_quote
        if closing < 0:
            return end  # the value is not closed, but the tag is
        position = closing
    return -1


def _make_atom(part: _Part, raw: str) -> Atom:
    if part.kind == "text":
        return Atom("text", part.start, part.end, _SPACE.sub(" ", unescape(raw)))
    if part.kind == "copied" and part.name in PROTECTED:
        text = _SPACE.sub(" ", unescape(_INNER_TAG.sub("", raw))).strip()
        return Atom("protected" if text else "point", part.start, part.end, text)
    if part.kind == "copied" or part.name in _POINTS or raw.endswith("/>"):
        return Atom("point", part.start, part.end)
    return Atom(part.kind, part.start, part.end)


def _make_slot(html: str, atoms: Sequence[Atom], breaks: Sequence[int], first_line: int) -> Iterator[Slot]:
    """Yield the slot of the content between two blocks, if it has words."""
    first, last = trim(atoms)
    atoms = atoms[first:last]
    if not any(atom.kind == "text" and has_words(atom.text) for atom in atoms):
        return
    content = html[atoms[0].start : atoms[-1].end]
    start = atoms[0].start + len(content) - len(content.lstrip(_BLANKS))
    stop = atoms[-1].end - len(content) + len(content.rstrip(_BLANKS))
    segment, markup = build_segment(html, _join_spaces(html, atoms), f"line {first_line + bisect(breaks, start)}")
    yield Slot(start, stop, segment, markup, _escape)


def _join_spaces(html: str, atoms: Sequence[Atom]) -> Iterator[Atom]:
    """Yield atoms with one space between words, also where only a line break separates them."""
    end = " "  # the last character; "" after a line break that touches a word
    for atom in atoms:
        if not end and atom.text[:1] not in ("", " "):
            yield Atom("text", atom.start, atom.start, " ")
        text = atom.text.lstrip(" ") if end == " " else atom.text
        text = text.rstrip(" ") if atom is atoms[-1] else text
        if text:
            end = text[-1]
        elif atom.kind == "point":
            end = "" if end != " " and _BREAK.match(html, atom.start) else "^"
        yield replace(atom, text=text)


def _read_attributes(html: str) -> Iterator[Slot]:
    """Yield the texts in attributes."""
    for part in _read_parts(html) if _HAS_ATTRIBUTE.search(html) else ():
        raw = html[part.start : part.end] if part.kind == "open" else ""
        for match in _ATTRIBUTE.finditer(raw) if _HAS_ATTRIBUTE.search(raw) else ():
            name, value = match[1].lower(), match[2] or ""
            text = _SPACE.sub(" ", unescape(value[1:-1])).strip()
            if name in _ATTRIBUTES and value[:1] in ("'", '"') and has_words(text):
                start, stop = part.start + match.start(2) + 1, part.start + match.end(2) - 1
                yield Slot(start, stop, Segment(text, location=f"attribute {name}"), escape=escape)


def _is_locked(tag: str) -> bool:
    if not _HAS_LOCK.search(tag):
        return False
    values = {match[1].lower(): (match[2] or "").strip("\"'").lower() for match in _ATTRIBUTE.finditer(tag)}
    return values.get("translate") == "no" or "notranslate" in values.get("class", "").split()


def _escape(text: str) -> str:
    return escape(text, quote=False).replace("\xa0", "&#160;")
