"""Ids to text: what each piece stands for, and how pieces join, all at once or as they arrive.

A character may lie across pieces (bytes) and a space may belong to the end of the text (marks), so a stream holds
back what the next piece could still change: joined together, what it gives out is what `text` gives.
"""

import codecs
from collections.abc import Sequence
from typing import Any

from regard.base.errors import RegardError
from regard.text import pretokenize
from regard.text.specials import SpecialIds

_WHITESPACE = (b" ", b"\t", b"\n", b"\r")


class TokenBytes:
    """The text of each id, and where words begin and end."""

    def __init__(
        self, vocabulary: Sequence[str], decoder: dict[str, Any] | None, specials: SpecialIds, where: str
    ) -> None:
        join_style = pretokenize.join_style(decoder)
        if join_style is None:
            raise RegardError(
                "The file joins its pieces in a way that Regard does not know.",
                where=where,
                fix="Use a vocabulary that `regard tokenizer learn` made.",
            )
        self.join_style: pretokenize.JoinStyle = join_style
        self.control = specials.control
        self.extra = frozenset(specials.extra.values())
        self.bytes = [_encode_token(entry, self.join_style) for entry in vocabulary]
        for text, token in specials.extra.items():
            self.bytes[token] = text.encode()
        for token in self.control:
            self.bytes[token] = b""
        self.bytes[specials.unk] = vocabulary[specials.unk].encode()
        self.unk = specials.unk
        self.control -= {self.unk}  # it stands for text, though nobody knows which

        has_leading_space, has_trailing_space = join_style not in ("words", "marks_after"), join_style == "marks_after"
        self.starts_word = [
            join_style == "words" or (has_leading_space and entry.startswith(_WHITESPACE)) for entry in self.bytes
        ]
        self.ends_word = [has_trailing_space and entry.endswith(b" ") for entry in self.bytes]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids."""
        if len(ids) and not 0 <= min(ids) <= max(ids) < len(self.bytes):
            raise self.make_id_error(ids)
        if self.join_style in ("bytes", "characters"):
            return b"".join([self.bytes[token] for token in ids]).decode("utf-8", "replace")
        decoder = StreamingDecoder(self)
        return "".join([decoder.push(token) for token in ids]) + decoder.finish()

    def make_id_error(self, ids: Sequence[int]) -> RegardError:
        """What is said of an id outside the vocabulary."""
        invalid_id = next(token for token in ids if not 0 <= token < len(self.bytes))
        return RegardError(
            f"There is no piece {invalid_id}: the vocabulary has {len(self.bytes)}.",
            fix="Use the vocabulary that the ids were made with.",
        )


class StreamingDecoder:
    """Text as ids arrive.

    stream = tokenizer.stream()
    for token in tokens:
        show(stream.push(token))
    show(stream.finish())
    """

    def __init__(self, token_bytes: TokenBytes) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_start = True  # nothing of this stretch was read yet: the text, or what follows an extra token
        self._pending_space = ""  # a space that is text only if something follows it

    def push(self, token: int) -> str:
        """The text that this id completes; it may be empty."""
        token_bytes = self._token_bytes
        if not 0 <= token < len(token_bytes.bytes):
            raise token_bytes.make_id_error([token])
        content = token_bytes.bytes[token]
        if token in token_bytes.extra and token_bytes.join_style in ("marks_before", "marks_after"):
            self._pending_space, self._is_start = "", True  # the marks at both sides of it stand for nothing
            return content.decode()
        text = self._decoder.decode(content)
        if not content or token_bytes.join_style in ("bytes", "characters"):
            return text
        is_first, self._is_start = self._is_start, False
        if token_bytes.join_style == "words":
            return text if is_first else f" {text}"
        if token_bytes.join_style == "marks_before":
            return text.removeprefix(" ") if is_first else text
        text = self._pending_space + text
        self._pending_space = " " if text.endswith(" ") else ""
        return text.removesuffix(" ")

    def finish(self) -> str:
        """What is left at the end: bytes that never became a character, as U+FFFD."""
        self._pending_space = ""
        return self._decoder.decode(b"", final=True)


def _encode_token(token: str, join_style: pretokenize.JoinStyle) -> bytes:
    match join_style:
        case "bytes":
            return (
                bytes(pretokenize.BYTE_ALPHABET[character] for character in token)
                if set(token) <= pretokenize.BYTE_ALPHABET.keys()
                else b""
            )
        case "marks_before" | "marks_after":
            return token.replace(pretokenize.SPACE_MARK, " ").encode()
        case "characters" | "words":
            return token.encode()
