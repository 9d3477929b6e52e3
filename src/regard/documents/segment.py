"""Segments: the plain text of a paragraph, cell or cue, with its inline markup as spans.

The spans of a segment form a forest. They are listed in document order (an opening tag comes before the tags inside
it), and `depth` counts the pairs around a span, so the order of tags at the same offset is not lost:

    a<b>c<br></b>   text "ac", pair (1, 2) at depth 0, point (2, 2) at depth 1
    a<b>c</b><br>   text "ac", pair (1, 2) at depth 0, point (2, 2) at depth 0
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

SpanKind = Literal["pair", "point", "protected"]


class Span(NamedTuple):
    """Markup over `text[start:end]` of a segment."""

    start: int
    end: int
    id: int
    """Names the markup within its segment; the format knows what it stands for."""
    kind: SpanKind
    """A `pair` of tags around text, a `point` without text (a line break, an image), or a `protected` text that is
    copied (code, a placeholder). Only pairs contain other spans."""
    depth: int = 0
    """Number of pairs around the span."""


@dataclass(frozen=True)
class Segment:
    """A text with its spans.

    Raises:
        ValueError: The spans overlap, are out of order or reach beyond the text.
    """

    text: str
    spans: tuple[Span, ...] = ()
    location: str = ""
    """Where the segment is in its file, for reports, e.g. "line 3"."""

    def __post_init__(self) -> None:
        end, parents = 0, list[Span]()  # where the next span may start; the open pairs
        for span in self.spans:
            while len(parents) > span.depth:
                end = parents.pop().end
            limit = parents[-1].end if parents else len(self.text)
            is_valid = len(parents) == span.depth and end <= span.start <= span.end <= limit
            if not is_valid or (span.kind == "point" and span.start != span.end):
                raise ValueError(f"Spans are not nested: {self.spans} over {len(self.text)} characters.")
            end = span.end
            if span.kind == "pair":
                parents.append(span)
                end = span.start
        if len({span.id for span in self.spans}) != len(self.spans):
            raise ValueError(f"Two spans have the same id: {self.spans}.")


class Piece(NamedTuple):
    """A part of a segment in reading order: text, or the markup of a span."""

    kind: Literal["text", "open", "close", "point", "protected"]
    text: str = ""
    """The text; of protected pieces too."""
    id: int = -1
    """Id of the span; -1 for text."""


def iter_pieces(segment: Segment) -> Iterator[Piece]:
    """Yield the texts, tags, points and protected pieces of a segment in order; formats write a segment from them.

    >>> segment = Segment("See a.py!", (Span(4, 8, 0, "pair"), Span(4, 8, 1, "protected", 1), Span(9, 9, 2, "point")))
    >>> [(piece.kind, piece.text or piece.id) for piece in iter_pieces(segment)]
    [('text', 'See '), ('open', 0), ('protected', 'a.py'), ('close', 0), ('text', '!'), ('point', 2)]
    """
    position, parents = 0, list[Span]()

    def text_before(end: int) -> Iterator[Piece]:
        nonlocal position
        if end > position:
            yield Piece("text", segment.text[position:end])
            position = end

    for span in segment.spans:
        while len(parents) > span.depth:
            yield from text_before(parents[-1].end)
            yield Piece("close", id=parents.pop().id)
        yield from text_before(span.start)
        if span.kind == "pair":
            yield Piece("open", id=span.id)
            parents.append(span)
        else:
            position = span.end
            yield Piece(span.kind, segment.text[span.start : span.end], span.id)
    while parents:
        yield from text_before(parents[-1].end)
        yield Piece("close", id=parents.pop().id)
    yield from text_before(len(segment.text))


class SegmentBuilder:
    """Builds a segment from text and markup in reading order; the reverse of `iter_pieces`.

    Spans without a given id are numbered 0, 1, 2, ... in order of the calls.
    """

    def __init__(self) -> None:
        self._texts = list[str]()
        self._spans = list[Span]()
        self._open = list[int]()  # indices of the open pairs
        self._length = 0

    def text(self, text: str) -> None:
        """Add text."""
        self._texts.append(text)
        self._length += len(text)

    def open(self, span_id: int | None = None) -> int:
        """Open a pair; returns its id."""
        self._open.append(len(self._spans))
        return self._add(self._length, "pair", len(self._open) - 1, span_id)

    def close(self) -> int:
        """Close the innermost open pair; returns its id.

        Raises:
            IndexError: No pair is open.
        """
        index = self._open.pop()
        self._spans[index] = self._spans[index]._replace(end=self._length)
        return self._spans[index].id

    def point(self, span_id: int | None = None) -> int:
        """Add a point; returns its id."""
        return self._add(self._length, "point", len(self._open), span_id)

    def protect(self, text: str, span_id: int | None = None) -> int:
        """Add a text that must be copied; returns its id."""
        start = self._length
        self.text(text)
        return self._add(start, "protected", len(self._open), span_id)

    def add(self, piece: Piece) -> None:
        """Add a piece of another segment, with its id."""
        if piece.kind == "text":
            self.text(piece.text)
        elif piece.kind == "open":
            self.open(piece.id)
        elif piece.kind == "close":
            self.close()
        elif piece.kind == "point":
            self.point(piece.id)
        else:
            self.protect(piece.text, piece.id)

    @property
    def depth(self) -> int:
        """Number of open pairs."""
        return len(self._open)

    def build(self, location: str = "") -> Segment:
        """Return the segment; pairs that are still open end with it."""
        while self._open:
            self.close()
        return Segment("".join(self._texts), tuple(self._spans), location)

    def _add(self, start: int, kind: SpanKind, depth: int, span_id: int | None) -> int:
        self._spans.append(Span(start, self._length, len(self._spans) if span_id is None else span_id, kind, depth))
        return self._spans[-1].id
