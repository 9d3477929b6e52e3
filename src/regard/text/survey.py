"""A vocabulary on a corpus: does every line come back, how much shorter do texts get, which pieces are used."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from regard.text.tokenizer import Tokenizer

Place = TypeVar("Place")
MANY = 1000  # lines encoded at a time


@dataclass
class Found(Generic[Place]):
    """How many lines something was found in, and the first of them."""

    lines: int = 0
    tokens: int = 0
    first: Place | None = None
    example: tuple[str, str] = ("", "")
    """The first line, and what came back of it."""

    def add(self, place: Place, text: str, back: str, tokens: int = 0) -> None:
        """Count a line."""
        if self.first is None:
            self.first, self.example = place, (text, back)
        self.lines += 1
        self.tokens += tokens


@dataclass
class Survey(Generic[Place]):
    """What was counted on the way through a corpus."""

    lines: int = 0
    characters: int = 0
    bytes: int = 0
    used: Counter[int] = field(default_factory=Counter)
    changed: Found[Place] = field(default_factory=Found)
    """Lines that do not come back, with nothing unknown in them to explain it."""
    unknown: Found[Place] = field(default_factory=Found)
    normalised: Found[Place] = field(default_factory=Found)
    """Lines that come back as the vocabulary's own normalisation wants them: no fault."""

    @property
    def tokens(self) -> int:
        """How many pieces the corpus has."""
        return self.used.total()

    @property
    def sound(self) -> bool:
        """Whether every line came back."""
        return not self.changed.lines and not self.unknown.lines


def survey(tokenizer: Tokenizer, lines: Iterable[tuple[Place, str]]) -> Survey[Place]:
    """Encode and decode every line, and count."""
    result: Survey[Place] = Survey()
    unknown = tokenizer.specials.unknown
    for some in _batches(lines):
        for (place, text), ids in zip(some, tokenizer.encode_ids([text for _, text in some]), strict=True):
            result.lines += 1
            result.characters += len(text)
            result.bytes += len(text.encode())
            result.used.update(ids)
            back = tokenizer.decode(ids)
            if unknown in ids:
                result.unknown.add(place, text, back, ids.count(unknown))
            elif back != text:
                found = result.normalised if back == tokenizer.normalise(text) else result.changed
                found.add(place, text, back)
    return result


def readable(tokenizer: Tokenizer, token: int) -> str:
    r"""A piece for people: the end of a word as the lectures write it, spaces as ␣, parts of characters as \xe2.

    >>> from regard.config.run import Bpe, ByteLevel
    >>> from regard.text.learn import learn
    >>> bpe, byte = learn(["low low"], Bpe(vocabulary=20)), learn([], ByteLevel())
    >>> readable(bpe, bpe.encode("low").ids[0]), [readable(byte, token) for token in byte.encode("l \n€").ids]
    ('low</w>', ['l', '␣', '\\n', '\\xe2', '\\x82', '\\xac'])
    """
    pieces = tokenizer.pieces
    if token in pieces.control or token in pieces.extra or token == pieces.unknown:
        return tokenizer.vocabulary[token]
    text = pieces.bytes[token].decode("utf-8", "backslashreplace")
    space = "</w>" if pieces.join == "marks_after" else "␣"
    shown = (space if one == " " else one if one.isprintable() else repr(one)[1:-1] for one in text)
    return "".join(shown)


def _batches(lines: Iterable[tuple[Place, str]]) -> Iterator[list[tuple[Place, str]]]:
    rest = iter(lines)
    while some := list(islice(rest, MANY)):
        yield some
