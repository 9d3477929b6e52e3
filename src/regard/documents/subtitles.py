r"""Subtitles: the text of a cue is a segment; numbers, times, notes and styles keep their bytes.

A translation has about as many lines as its source, of about the same length. Speakers in one cue ("- Hello. / - Hi!")
are segments of their own.

>>> document = SrtFormat().read(b"1\n00:00:01,000 --> 00:00:02,000\n{\\an8}<i>One two</i>\nthree\n")
>>> [(segment.text, segment.location) for segment in document.segments]
[('One two three', 'line 3')]
>>> document.write([Segment("Eins zwei drei vier", document.segments[0].spans)]).decode().split("\n")[2:]
['{\\an8}<i>Eins zw</i>ei', 'drei vier', '']
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from html import escape, unescape

from regard.base import limits
from regard.base.errors import RegardError
from regard.documents.format import decode_utf8
from regard.documents.inline import Atom, AtomKind, balance, build_segment, trim
from regard.documents.offsets import OffsetDocument, Slot, copy
from regard.documents.segment import Segment
from regard.documents.strings import has_words
from regard.documents.txt import join_breaks

MAX_LINE = 42  # characters, as broadcasters recommend
MAX_WRAPPED = 1_000  # characters of a cue that is divided into lines
_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")
_TIMES = re.compile(r"\s*\d[\d:.,]*+\s*-->\s*\d")
_COPIED = re.compile(r"WEBVTT\b|NOTE\b|STYLE\b|REGION\b")  # up to the next empty line
_TAG = re.compile(r"<(/?)([a-zA-Z]++)[^<>]*+>|<[\d:.]++>|\{\\[^{}]*+\}")
_SPEAKER = re.compile(r"\s*[-\u2013\u2014]\s*(?!\d)")


class SrtFormat:
    """SubRip."""

    suffixes = (".srt",)
    media_type = "application/x-subrip; charset=utf-8"

    def read(self, data: bytes) -> OffsetDocument:
        """Read cues."""
        return _read(data, is_vtt=False)


class VttFormat:
    """WebVTT."""

    suffixes = (".vtt",)
    media_type = "text/vtt; charset=utf-8"

    def read(self, data: bytes) -> OffsetDocument:
        """Read cues."""
        return _read(data, is_vtt=True)


@dataclass(frozen=True)
class CueSlot(Slot):
    """The words of a cue."""

    lines: int = 1
    width: int = 0
    """Length of the longest line."""
    newline: str = "\n"

    def render(self, translation: Segment) -> str:
        """Return a translation in lines."""
        text = re.sub(r"[\r\n]", " ", translation.text)
        count = max(self.lines, -(-len(text) // max(MAX_LINE, self.width)))
        text = _divide(text, count) if len(text) <= MAX_WRAPPED else text
        return super().render(replace(translation, text=text)).replace("\n", self.newline)


def _divide(text: str, count: int) -> str:
    """Replace spaces by line breaks, so that a text has `count` lines of about the same length if it can."""
    widths = range(max(1, len(text) // count), len(text) + 1)
    width = bisect_left(widths, True, key=lambda width: _break_lines(text, width).count("\n") < count)
    return _break_lines(text, widths[min(width, len(widths) - 1)])


def _break_lines(text: str, width: int) -> str:
    """Replace spaces by line breaks, so that lines have at most `width` characters if words allow it."""
    return re.sub(rf"(.{{1,{width}}})( |$)", lambda line: line[1] + ("\n" if line[2] else ""), text)


def _read(data: bytes, *, is_vtt: bool) -> OffsetDocument:
    """Read cues: lines that are neither empty, times, the name of a cue nor part of a block that is copied."""
    if len(data) > limits.DOCUMENT:
        message = f"The file has {len(data):,} bytes, more than {limits.DOCUMENT:,}."
        raise RegardError(message, location="subtitles", hint="Split the file.")
    mark, text = decode_utf8(data)
    lines = list(_LINE.finditer(text))
    newline = next((line[2] for line in lines if line[2]), "\n")
    slots, cue, is_block, is_first = list[Slot](), list[tuple[int, int]](), False, True
    for number, line in enumerate([*lines, None]):
        content = line[1] if line else ""
        has_times = number + 1 < len(lines) and _TIMES.match(lines[number + 1][1]) is not None  # in the next line
        is_block = bool(content.strip()) and (is_block or (is_vtt and is_first and bool(_COPIED.match(content))))
        is_name = has_times and (is_first or content.strip().isdecimal())
        is_text = bool(content.strip()) and not (is_block or is_name or _TIMES.match(content))
        speaker = _SPEAKER.match(content) if is_text else None
        if cue and (speaker or not is_text):
            slots += _make_slot(text, cue, newline, f"line {number - len(cue) + 1}", is_vtt=is_vtt)
            cue = []
        if line and is_text:
            cue.append((line.start(1) + (speaker.end() if speaker else 0), line.end(1)))
        is_first = not content.strip()
    return OffsetDocument(mark, text, slots)


def _make_slot(text: str, lines: list[tuple[int, int]], newline: str, location: str, *, is_vtt: bool) -> Iterator[Slot]:
    """Yield the slot of a cue, if it has words."""
    atoms, position, end = list[tuple[Atom, str]](), lines[0][0], lines[-1][1]
    for tag in [*_TAG.finditer(text, position, end), None]:
        start, stop = tag.span() if tag else (end, end)
        content = join_breaks(text[position:start])
        atoms.append((Atom("text", position, start, unescape(content) if is_vtt else content), ""))
        kind: AtomKind = "point" if not (tag and tag[2]) else "close" if tag[1] else "open"
        atoms.append((Atom(kind, start, stop), f"tag {tag and tag[2]}"))
        position = stop
    balanced = balance(atoms)
    first, last = trim(balanced)
    inner = balanced[first:last]
    if any(atom.kind == "text" and has_words(atom.text) for atom in inner):
        inner[0] = replace(inner[0], text=inner[0].text.lstrip())
        inner[-1] = replace(inner[-1], text=inner[-1].text.rstrip())
        raw = text[inner[0].start : inner[-1].end]
        start, stop = inner[0].start + len(raw) - len(raw.lstrip()), inner[-1].end - len(raw) + len(raw.rstrip())
        segment, markup = build_segment(text, inner, location)
        escape_text: Callable[[str], str] = partial(escape, quote=False) if is_vtt else copy
        width = max(stop - start for start, stop in lines)
        yield CueSlot(start, stop, segment, markup, escape_text, lines=len(lines), width=width, newline=newline)
