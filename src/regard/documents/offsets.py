"""Documents whose segments are ranges of one text: everything outside of the ranges is copied."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from regard.documents.segment import Segment, iter_pieces


def copy(text: str) -> str:
    """Return the text."""
    return text


@dataclass(frozen=True)
class Slot:
    """A segment's range in the text of its file."""

    start: int
    end: int
    segment: Segment
    markup: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """By span id: the opening and closing tag of a pair, or the markup of a point or protected piece and ""."""
    escape: Callable[[str], str] = copy
    """Writes text in the format's syntax."""
    holds_source: bool = True
    """Whether the range holds the source; a target is written even if the translation equals the source."""

    def render(self, translation: Segment) -> str:
        """Return a translation in the format's syntax."""
        parts = list[str]()
        for piece in iter_pieces(translation):
            if piece.kind == "text":
                parts.append(self.escape(piece.text))
            else:
                parts.append(self.markup[piece.id][piece.kind == "close"])
        return "".join(parts)


class OffsetDocument:
    """A text file with the ranges of its segments.

    Args:
        mark: The bytes before the text, e.g. a byte order mark.
        text: The text of the file.
        slots: The ranges to translate, in order.
    """

    def __init__(self, mark: bytes, text: str, slots: Iterable[Slot]) -> None:
        self.mark, self.text, self.slots = mark, text, tuple(slots)
        self.segments = [slot.segment for slot in self.slots]

    def write(self, translations: Sequence[Segment]) -> bytes:
        """Return the file with each segment replaced; an unchanged segment keeps its bytes."""
        parts, position = list[str](), 0
        for slot, translation in zip(self.slots, translations, strict=True):
            parts.append(self.text[position : slot.start])
            is_unchanged = slot.holds_source and (translation.text, translation.spans) == (
                slot.segment.text,
                slot.segment.spans,
            )
            parts.append(self.text[slot.start : slot.end] if is_unchanged else slot.render(translation))
            position = slot.end
        return self.mark + "".join([*parts, self.text[position:]]).encode()
