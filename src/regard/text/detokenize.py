"""Token ids to text: the bytes of each token, and decoding of a whole sequence or of a stream.

The bytes of a character may be spread over tokens, and a space mark at the end of the text is not a space. The
streaming decoder therefore holds back characters that the next token could change; its concatenated outputs equal
`TokenBytes.decode`.
"""

import codecs
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from regard.base.errors import RegardError
from regard.text import pretokenize
from regard.text.glossary import is_word_character
from regard.text.specials import SpecialIds

_WHITESPACE = (b" ", b"\t", b"\n", b"\r")
_LATIN_1 = {ord(character): byte for character, byte in pretokenize.BYTE_ALPHABET.items()}  # byte by character
_CLOSING = (b".", b"?", b"!", b",")  # WordPiece decoders write no space before them


class TokenBytes:
    """The bytes of each token, and which tokens start or end a word."""

    def __init__(
        self, vocabulary: Sequence[str], decoder: dict[str, Any] | None, specials: SpecialIds, location: str
    ) -> None:
        join_style = pretokenize.read_join_style(decoder)
        if join_style is None:
            raise RegardError(
                "Regard does not support this tokenizer's `decoder`.",
                location=location,
                hint="Use a tokenizer made by `regard tokenizer learn`.",
            )
        self.join_style: pretokenize.JoinStyle = join_style
        self.control = specials.control
        self.extra = frozenset(specials.extra.values())
        self.bytes = [_encode_token(entry, self.join_style) for entry in vocabulary]
        if pretokenize.has_byte_fallback(decoder):
            for token, entry in enumerate(vocabulary):
                if entry in pretokenize.BYTE_TOKENS:
                    self.bytes[token] = bytes([pretokenize.BYTE_TOKENS[entry]])
        for text, token in specials.extra.items():
            self.bytes[token] = text.encode()
        for token in self.control:
            self.bytes[token] = b""
        self.unk = specials.unk
        if self.unk not in (specials.pad, specials.bos, specials.eos):  # unless it shares the token of another role
            self.bytes[self.unk] = vocabulary[self.unk].strip().encode()
            self.control -= {self.unk}  # unk stands for unknown text

        has_leading_space, has_trailing_space = join_style not in ("words", "marks_after"), join_style == "marks_after"
        self.is_start = [
            join_style == "words" or (has_leading_space and entry.startswith(_WHITESPACE)) for entry in self.bytes
        ]
        if join_style == "wordpiece":
            is_clean = bool(decoder and decoder.get("cleanup"))
            self.is_start = [
                not token.startswith(pretokenize.CONTINUATION) and not (is_clean and entry in _CLOSING)
                for token, entry in zip(vocabulary, self.bytes, strict=True)
            ]
        self.is_end = [has_trailing_space and entry.endswith(b" ") for entry in self.bytes]

    @cached_property
    def begins_inside(self) -> list[bool]:
        """Whether each token begins with a character that continues the word before it."""
        return [
            not is_start and _is_inside(content.decode("utf-8", "replace")[:1])
            for content, is_start in zip(self.bytes, self.is_start, strict=True)
        ]

    @cached_property
    def ends_inside(self) -> list[bool]:
        """Whether each token ends with a character that the next token may continue."""
        return [
            not is_end and _is_inside(content.decode("utf-8", "replace")[-1:])
            for content, is_end in zip(self.bytes, self.is_end, strict=True)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text.

        Raises:
            RegardError: An id is outside the vocabulary.
        """
        if len(ids) and not 0 <= min(ids) <= max(ids) < len(self.bytes):
            raise self.make_id_error(ids)
        if self.join_style in ("bytes", "characters"):
            return b"".join([self.bytes[token] for token in ids]).decode("utf-8", "replace")
        decoder = StreamingDecoder(self)
        return "".join([decoder.push(token) for token in ids]) + decoder.finish()

    def make_id_error(self, ids: Sequence[int]) -> RegardError:
        """Return the error to raise for ids outside the vocabulary."""
        invalid_id = next(token for token in ids if not 0 <= token < len(self.bytes))
        return RegardError(
            f"There is no token {invalid_id}: the vocabulary has {len(self.bytes)} tokens, numbered from 0.",
            hint="Use the tokenizer that produced the ids.",
        )


class StreamingDecoder:
    """Decode ids one by one.

    decoder = tokenizer.make_streaming_decoder()
    for token in tokens:
        show(decoder.push(token))
    show(decoder.finish())
    """

    def __init__(self, token_bytes: TokenBytes) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_start = True  # at the start of the text, or after an extra token
        self._pending_space = ""  # part of the text only if another token follows

    def push(self, token: int) -> str:
        """Return the text that this token completes; it may be empty."""
        token_bytes = self._token_bytes
        if not 0 <= token < len(token_bytes.bytes):
            raise token_bytes.make_id_error([token])
        content = token_bytes.bytes[token]
        if token in token_bytes.extra and token_bytes.join_style in ("marks_before", "marks_after"):
            self._pending_space, self._is_start = "", True  # space marks next to an extra token are not spaces
            return content.decode()
        text = self._decoder.decode(content)
        if not content or token_bytes.join_style in ("bytes", "characters"):
            return text
        is_first, self._is_start = self._is_start, False
        if token_bytes.join_style in ("words", "wordpiece"):
            return text if is_first or not token_bytes.is_start[token] else f" {text}"
        if token_bytes.join_style == "marks_before":
            return text.removeprefix(" ") if is_first else text
        text = self._pending_space + text
        self._pending_space = " " if text.endswith(" ") else ""
        return text.removesuffix(" ")

    def finish(self) -> str:
        """Return the rest of the text: U+FFFD for bytes that do not complete a character, otherwise empty."""
        self._pending_space = ""
        return self._decoder.decode(b"", final=True)


def _is_inside(character: str) -> bool:
    return character == "\ufffd" or is_word_character(character)  # or part of a character


def _encode_token(token: str, join_style: pretokenize.JoinStyle) -> bytes:
    match join_style:
        case "bytes":
            is_text = set(token) <= pretokenize.BYTE_ALPHABET.keys()
            return token.translate(_LATIN_1).encode("latin-1") if is_text else b""
        case "marks_before" | "marks_after":
            return token.replace(pretokenize.SPACE_MARK, " ").encode()
        case "wordpiece":
            return token.removeprefix(pretokenize.CONTINUATION).encode()
        case "characters" | "words":
            return token.encode()
