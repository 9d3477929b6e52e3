"""Ids to text: what each piece stands for, and how pieces join, all at once or as they arrive.

A character may lie across pieces (bytes) and a space may belong to the end of the text (marks), so a stream holds
back what the next piece could still change: joined together, what it gives out is what `text` gives.
"""

import codecs
from collections.abc import Sequence
from typing import Any

from regard.base.errors import RegardError
from regard.text import units
from regard.text.specials import SpecialIds

_SPACES = (b" ", b"\t", b"\n", b"\r")


class Pieces:
    """The text of each id, and where words begin and end."""

    def __init__(
        self, vocabulary: Sequence[str], decoder: dict[str, Any] | None, specials: SpecialIds, where: str
    ) -> None:
        join = units.join(decoder)
        if join is None:
            raise RegardError(
                "The file joins its pieces in a way that Regard does not know.",
                where=where,
                fix="Use a vocabulary that `regard tokenizer learn` made.",
            )
        self.join: units.Join = join
        self.control = specials.control
        self.extra = frozenset(specials.extra.values())
        self.bytes = [_bytes(piece, self.join) for piece in vocabulary]
        for text, token in specials.extra.items():
            self.bytes[token] = text.encode()
        for token in self.control:
            self.bytes[token] = b""
        self.bytes[specials.unknown] = vocabulary[specials.unknown].encode()
        self.unknown = specials.unknown
        self.control -= {self.unknown}  # it stands for text, though nobody knows which

        before, after = join not in ("words", "marks_after"), join == "marks_after"
        self.opens = [join == "words" or (before and piece.startswith(_SPACES)) for piece in self.bytes]
        self.closes = [after and piece.endswith(b" ") for piece in self.bytes]

    def text(self, ids: Sequence[int]) -> str:
        """The text of these ids."""
        if len(ids) and not 0 <= min(ids) <= max(ids) < len(self.bytes):
            raise self.no_piece(ids)
        if self.join in ("bytes", "characters"):
            return b"".join([self.bytes[token] for token in ids]).decode("utf-8", "replace")
        stream = Stream(self)
        return "".join([stream.push(token) for token in ids]) + stream.finish()

    def no_piece(self, ids: Sequence[int]) -> RegardError:
        """What is said of an id outside the vocabulary."""
        wrong = next(token for token in ids if not 0 <= token < len(self.bytes))
        return RegardError(
            f"There is no piece {wrong}: the vocabulary has {len(self.bytes)}.",
            fix="Use the vocabulary that the ids were made with.",
        )


class Stream:
    """Text as ids arrive.

    stream = tokenizer.stream()
    for token in tokens:
        show(stream.push(token))
    show(stream.finish())
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._fresh = True  # nothing of this stretch was read yet: the text, or what follows an extra token
        self._held = ""  # a space that is text only if something follows it

    def push(self, token: int) -> str:
        """The text that this id completes; it may be empty."""
        pieces = self._pieces
        if not 0 <= token < len(pieces.bytes):
            raise pieces.no_piece([token])
        piece = pieces.bytes[token]
        if token in pieces.extra and pieces.join in ("marks_before", "marks_after"):
            self._held, self._fresh = "", True  # the marks at both sides of it stand for nothing
            return piece.decode()
        text = self._decoder.decode(piece)
        if not piece or pieces.join in ("bytes", "characters"):
            return text
        first, self._fresh = self._fresh, False
        if pieces.join == "words":
            return text if first else f" {text}"
        if pieces.join == "marks_before":
            return text.removeprefix(" ") if first else text
        text = self._held + text
        self._held = " " if text.endswith(" ") else ""
        return text.removesuffix(" ")

    def finish(self) -> str:
        """What is left at the end: bytes that never became a character, as U+FFFD."""
        self._held = ""
        return self._decoder.decode(b"", final=True)


def _bytes(piece: str, join: units.Join) -> bytes:
    match join:
        case "bytes":
            return bytes(units.BYTES[character] for character in piece) if set(piece) <= units.BYTES.keys() else b""
        case "marks_before" | "marks_after":
            return piece.replace(units.MARK, " ").encode()
        case "characters" | "words":
            return piece.encode()
