"""Split a segment into sentences and join their translations. A pair over several sentences has a part in each."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from regard.documents.segment import Segment, SegmentBuilder, iter_pieces
from regard.text.sentences import split_sentences


@dataclass(frozen=True, eq=False)
class SentencePart:
    """A sentence of a segment."""

    segment: Segment
    """The sentence with its spans; pairs that reach beyond it are cut off."""
    space: str = ""
    """White space between the sentence and the next."""
    from_start: frozenset[int] = frozenset()
    """Ids of pairs that began in an earlier sentence."""
    to_end: frozenset[int] = frozenset()
    """Ids of pairs that go on in the next sentence."""


def split_segment(segment: Segment) -> list[SentencePart]:
    """Split a segment into its sentences; they do not end inside a protected text.

    >>> from regard.documents.segment import Span
    >>> parts = split_segment(Segment("One! Two three. Four.", (Span(9, 21, 0, "pair"),)))
    >>> [(part.segment.text, part.segment.spans[0][:2] if part.segment.spans else (), part.to_end) for part in parts]
    [('One!', (), frozenset()), ('Two three.', (4, 10), frozenset({0})), ('Four.', (0, 5), frozenset())]
    """
    ranges = _find_ranges(segment)
    parts, builder, parents = list[SentencePart](), SegmentBuilder(), list[int]()
    position, from_start = 0, frozenset[int]()

    def finish() -> None:
        nonlocal builder, from_start
        end, next_start = ranges[len(parts)]
        sentence, space = builder.build(segment.location), segment.text[end:next_start]
        parts.append(SentencePart(sentence, space, from_start, frozenset(parents)))
        builder, from_start = SegmentBuilder(), frozenset(parents)
        for span_id in parents:
            builder.open(span_id)

    for piece in iter_pieces(segment):
        text = piece.text
        while piece.kind == "text" and text:
            end, next_start = ranges[len(parts)]
            if position >= next_start:
                finish()
                continue
            begin = ranges[len(parts) - 1][1] if parts else 0  # a tag in the space before it may have begun the part
            is_space = position < begin or position >= end
            count = min(len(text), (begin if position < begin else end if position < end else next_start) - position)
            if not is_space:
                builder.text(text[:count])
            text, position = text[count:], position + count
        if piece.kind == "text":
            continue
        end, _ = ranges[len(parts)]
        is_after = position > end if piece.kind == "point" else position >= end and piece.kind != "close"
        if is_after and len(parts) + 1 < len(ranges):
            finish()
        if piece.kind == "open":
            parents.append(piece.id)
        elif piece.kind == "close":
            parents.pop()
        builder.add(piece)
        position += len(piece.text)
    finish()
    return parts


def join_parts(parts: Sequence[SentencePart], translations: Sequence[Segment], location: str) -> Segment:
    """Join the translations of the sentences of a segment."""
    builder = SegmentBuilder()
    for part, translation in zip(parts, translations, strict=True):
        for piece in iter_pieces(translation):
            is_open = piece.kind == "open" and piece.id in part.from_start
            goes_on = piece.kind == "close" and piece.id in part.to_end
            if not (is_open or goes_on):
                builder.add(piece)
        builder.text(part.space)
    return builder.build(location)


def _find_ranges(segment: Segment) -> list[tuple[int, int]]:
    """Return the ends of each sentence and of the space after it."""
    protected = [(span.start, span.end) for span in segment.spans if span.kind == "protected"]
    ranges, position = list[tuple[int, int]](), 0
    for sentence, space in split_sentences(segment.text) or [("", segment.text)]:
        end = position + len(sentence)
        position = end + len(space)
        ranges.append((end, position))
    starts = [start for start, _ in protected]
    inside = set[int]()
    for number, (end, next_start) in enumerate(ranges):
        before = bisect_left(starts, next_start)  # protected texts do not overlap, so the last one before it decides
        if before and end < protected[before - 1][1]:
            inside.add(number)
    return [bounds for number, bounds in enumerate(ranges[:-1]) if number not in inside] + ranges[-1:]
