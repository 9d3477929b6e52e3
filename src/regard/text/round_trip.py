"""A vocabulary on a corpus: does every line come back, how much shorter do texts get, which pieces are used."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from regard.text.tokenizer import Tokenizer

Place = TypeVar("Place")
BATCH_SIZE = 1000  # lines encoded at a time


@dataclass
class LineTally(Generic[Place]):
    """How many lines something was found in, and the first of them."""

    lines: int = 0
    tokens: int = 0
    first_place: Place | None = None
    example: tuple[str, str] = ("", "")
    """The first line, and what came back of it."""

    def add(self, place: Place, text: str, decoded: str, tokens: int = 0) -> None:
        """Count a line."""
        if self.first_place is None:
            self.first_place, self.example = place, (text, decoded)
        self.lines += 1
        self.tokens += tokens


@dataclass
class RoundTripReport(Generic[Place]):
    """What was counted on the way through a corpus."""

    lines: int = 0
    characters: int = 0
    bytes: int = 0
    token_counts: Counter[int] = field(default_factory=Counter)
    changed: LineTally[Place] = field(default_factory=LineTally)
    """Lines that do not come back, with nothing unknown in them to explain it."""
    unknown: LineTally[Place] = field(default_factory=LineTally)
    normalised: LineTally[Place] = field(default_factory=LineTally)
    """Lines that come back as the vocabulary's own normalisation wants them: no fault."""

    @property
    def tokens(self) -> int:
        """How many pieces the corpus has."""
        return self.token_counts.total()

    @property
    def is_lossless(self) -> bool:
        """Whether every line came back."""
        return not self.changed.lines and not self.unknown.lines


def check_round_trip(tokenizer: Tokenizer, lines: Iterable[tuple[Place, str]]) -> RoundTripReport[Place]:
    """Encode and decode every line, and count."""
    report: RoundTripReport[Place] = RoundTripReport()
    unk = tokenizer.specials.unk
    for batch in _iter_batches(lines):
        for (place, text), ids in zip(batch, tokenizer.encode_ids([text for _, text in batch]), strict=True):
            report.lines += 1
            report.characters += len(text)
            report.bytes += len(text.encode())
            report.token_counts.update(ids)
            decoded = tokenizer.decode(ids)
            if unk in ids:
                report.unknown.add(place, text, decoded, ids.count(unk))
            elif decoded != text:
                tally = report.normalised if decoded == tokenizer.normalise(text) else report.changed
                tally.add(place, text, decoded)
    return report


def show_token(tokenizer: Tokenizer, token: int) -> str:
    r"""A piece for people: the end of a word as the lectures write it, spaces as ␣, parts of characters as \xe2.

    >>> from regard.config.run import Bpe, ByteLevel
    >>> from regard.text.learn import learn
    >>> bpe, byte = learn(["low low"], Bpe(vocabulary=20)), learn([], ByteLevel())
    >>> show_token(bpe, bpe.encode("low").ids[0]), [show_token(byte, token) for token in byte.encode("l \n€").ids]
    ('low</w>', ['l', '␣', '\\n', '\\xe2', '\\x82', '\\xac'])
    """
    token_bytes = tokenizer.token_bytes
    if token in token_bytes.control or token in token_bytes.extra or token == token_bytes.unk:
        return tokenizer.vocabulary[token]
    text = token_bytes.bytes[token].decode("utf-8", "backslashreplace")
    space = "</w>" if token_bytes.join_style == "marks_after" else "␣"
    characters = (
        space if character == " " else character if character.isprintable() else repr(character)[1:-1]
        for character in text
    )
    return "".join(characters)


def _iter_batches(lines: Iterable[tuple[Place, str]]) -> Iterator[list[tuple[Place, str]]]:
    remaining = iter(lines)
    while batch := list(islice(remaining, BATCH_SIZE)):
        yield batch
