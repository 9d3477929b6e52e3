"""Strings in tables of messages (JSON, YAML, gettext): a text with its place in the file."""

from collections.abc import Callable
from dataclasses import dataclass

from regard.documents.offsets import Slot
from regard.documents.segment import Segment


def keep(text: str) -> str:
    """Return the text."""
    return text


@dataclass(frozen=True)
class StringSlot(Slot):
    """A string: the white space around its text is preserved."""

    before: str = ""
    after: str = ""
    quote: Callable[[str], str] = keep
    """Writes the whole string in the format's syntax."""

    def render(self, translation: Segment) -> str:
        """Return a translation in the format's syntax."""
        return self.quote(self.before + translation.text + self.after)


def make_slot(
    start: int, end: int, value: str, location: str, quote: Callable[[str], str], *, holds_source: bool = True
) -> StringSlot:
    """Return the slot of a string.

    Args:
        start: Where the string starts in the file.
        end: Where it ends.
        value: The string without quotation marks and escapes.
        location: Where it is, for reports.
        quote: Writes a string in the format's syntax.
        holds_source: Whether the range holds the source, not a target.
    """
    text = value.strip()
    first = value.index(text)
    before, after = value[:first], value[first + len(text) :]
    segment = Segment(text, location=location)
    return StringSlot(start, end, segment, holds_source=holds_source, before=before, after=after, quote=quote)


def has_words(value: str) -> bool:
    """Return whether a string has something to translate: at least one letter."""
    return any(character.isalpha() for character in value)
