"""Round-trip check of a tokenizer on a corpus: lossless decoding, compression, token counts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from regard.text.tokenizer import Tokenizer

Location = TypeVar("Location")
BATCH_SIZE = 1000  # lines encoded at a time


@dataclass
class LineTally(Generic[Location]):
    """Number of lines with one property (changed, unknown, normalized), and the first such line."""

    lines: int = 0
    tokens: int = 0
    first_location: Location | None = None
    example: tuple[str, str] = ("", "")
    """The first line and its decoded text."""

    def add(self, location: Location, text: str, decoded: str, tokens: int = 0) -> None:
        """Count a line."""
        if self.first_location is None:
            self.first_location, self.example = location, (text, decoded)
        self.lines += 1
        self.tokens += tokens


@dataclass
class RoundTripReport(Generic[Location]):
    """Counts over a corpus."""

    lines: int = 0
    characters: int = 0
    bytes: int = 0
    token_counts: Counter[int] = field(default_factory=Counter)
    changed: LineTally[Location] = field(default_factory=LineTally)
    """Lines that do not decode to the same text although they have no unknown tokens."""
    unknown: LineTally[Location] = field(default_factory=LineTally)
    normalized: LineTally[Location] = field(default_factory=LineTally)
    """Lines that decode to their normalized text."""

    @property
    def tokens(self) -> int:
        """Number of tokens in the corpus."""
        return self.token_counts.total()

    @property
    def is_lossless(self) -> bool:
        """Whether every line decodes to itself or its normalized text."""
        return not self.changed.lines and not self.unknown.lines


def check_round_trip(tokenizer: Tokenizer, lines: Iterable[tuple[Location, str]]) -> RoundTripReport[Location]:
    """Encode and decode every line and count the differences.

    Args:
        tokenizer: The tokenizer to check.
        lines: Pairs of a location (any type, for the report) and a text.
    """
    report: RoundTripReport[Location] = RoundTripReport()
    unk = tokenizer.specials.unk
    for batch in _iter_batches(lines):
        for (location, text), ids in zip(batch, tokenizer.encode_ids([text for _, text in batch]), strict=True):
            report.lines += 1
            report.characters += len(text)
            report.bytes += len(text.encode())
            report.token_counts.update(ids)
            decoded = tokenizer.decode(ids)
            if unk in ids:
                report.unknown.add(location, text, decoded, ids.count(unk))
            elif decoded != text:
                tally = report.normalized if decoded == tokenizer.normalize(text) else report.changed
                tally.add(location, text, decoded)
    return report


def show_token(tokenizer: Tokenizer, token: int) -> str:
    r"""Format a token for display: the end of a word as `</w>`, spaces as ␣, parts of characters as \xe2.

    >>> from regard.config.tokenizers import BpeConfig, ByteLevelConfig
    >>> from regard.text.learn import learn
    >>> bpe, byte = learn(["low low"], BpeConfig(vocabulary=20)), learn([], ByteLevelConfig())
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


def _iter_batches(lines: Iterable[tuple[Location, str]]) -> Iterator[list[tuple[Location, str]]]:
    remaining = iter(lines)
    while batch := list(islice(remaining, BATCH_SIZE)):
        yield batch
