"""A vocabulary at work: text to ids with spans and words, and back.

    tokenizer = Tokenizer.load(Path("tokenizer.json"))
    tokenizer.encode("low lower").ids
    tokenizer.decode([17, 4])

The file is Hugging Face's `tokenizer.json`, and encoding is done by its `tokenizers`. A `Tokenizer` never changes: it
is the bytes of its file. `specials` explains where the roles of special tokens are kept in it.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers
from pydantic_core import to_json

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.files import read_regular_file, write_atomic
from regard.base.parsing import parse_json
from regard.text import pretokenize, specials, tokenizer_check
from regard.text.detokenize import StreamingDecoder, TokenBytes


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text as ids, and for each of them the characters it stands for and the number of its word.

    A word is what spaces separate, with one of the spaces beside it. Special tokens belong to none.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]


class Tokenizer:
    """Text to ids and back, by the file whose bytes it is given."""

    def __init__(self, content: bytes, where: str = "tokenizer.json") -> None:
        self.content = content
        document, self.backend = _parse(content, where)
        self.specials = specials.read_special_ids(document, where)
        self.size: int = self.backend.get_vocab_size(with_added_tokens=True)
        self.backend.encode_special_tokens = True  # "<pad>" in a text is text
        self._document = document
        self._normalizer = pretokenize.user_normalizer(document.get("normalizer"))
        extra = sorted(self.specials.extra, key=len, reverse=True)
        self._extra_pattern = re.compile(f"({'|'.join(map(re.escape, extra))})") if extra else None
        self._where = where

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a `tokenizer.json`."""
        try:
            content = read_regular_file(path, limits.DOCUMENT)
        except OSError as error:
            what, fix = f"The vocabulary cannot be read: {error.strerror}.", "Learn one with `regard tokenizer learn`."
            raise RegardError(what, where=str(path), fix=fix) from error
        return cls(content, where=str(path))

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all; the same vocabulary gives the same bytes."""
        write_atomic(path, self.content)

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of the file's bytes."""
        return hashlib.sha256(self.content).hexdigest()

    def encode(self, text: str) -> Encoding:
        """Ids, spans and words. No special tokens are added: tasks know which they need."""
        encoding = self.encode_with_offsets([text])[0]
        ids = encoding.ids
        return Encoding(ids, encoding.offsets, self.word_ids(ids))

    def encode_ids(self, texts: list[str]) -> list[list[int]]:
        """Ids alone, of many texts: the quick way."""
        with _translate_errors(texts, self._where):
            return [encoding.ids for encoding in self.backend.encode_batch_fast(texts, add_special_tokens=False)]

    def encode_with_offsets(self, texts: list[str]) -> list[tokenizers.Encoding]:
        """What `tokenizers` itself returns, with offsets and its own (finer) words."""
        with _translate_errors(texts, self._where):
            return self.backend.encode_batch(texts, add_special_tokens=False)

    def decode(self, ids: Sequence[int], prefix: Sequence[int] = ()) -> str:
        """The text; special tokens are left out, and what was unknown shows as its token, e.g. <unk>.

        `after` are ids that stand before it: whether a space belongs before the first word depends on them.
        """
        if not prefix:
            return self.token_bytes.decode(ids)
        decoder = self.make_streaming_decoder()
        for token in prefix:
            decoder.push(token)
        return "".join([decoder.push(token) for token in ids]) + decoder.finish()

    def make_streaming_decoder(self) -> StreamingDecoder:
        """A decoder for ids that arrive one by one; it never gives out half a character."""
        return StreamingDecoder(self.token_bytes)

    def normalise(self, text: str) -> str:
        """What comes back of a text that has nothing unknown: itself, unless the vocabulary normalises."""
        if self._normalizer is None:
            return text
        parts = (
            self._extra_pattern.split(text) if self._extra_pattern else [text]
        )  # extra tokens stay as they are, at odd places
        return "".join(part if n % 2 else self._normalizer.normalize_str(part) for n, part in enumerate(parts))

    def word_ids(self, ids: Sequence[int]) -> list[int | None]:
        """The number of each id's word, from the ids alone; None for special tokens."""
        starts_word, ends_word, control = (
            self.token_bytes.starts_word,
            self.token_bytes.ends_word,
            self.token_bytes.control,
        )
        word_numbers: list[int | None] = []
        word_number, is_new_word = -1, True
        for token in ids:
            if token in control:
                word_numbers.append(None)
                is_new_word = True
            else:
                word_number += is_new_word or starts_word[token]
                word_numbers.append(word_number)
                is_new_word = ends_word[token]
        return word_numbers

    @cached_property
    def vocabulary(self) -> list[str]:
        """The pieces by id, as the file writes them."""
        id_of_text = self.backend.get_vocab(with_added_tokens=True)
        return sorted(id_of_text, key=id_of_text.__getitem__)

    @cached_property
    def token_bytes(self) -> TokenBytes:
        """What each id stands for, as text."""
        return TokenBytes(self.vocabulary, self._document.get("decoder"), self.specials, self._where)

    @property
    def model(self) -> dict[str, Any]:
        """The `model` of the file: merges of a BPE, scores of a unigram model."""
        return dict(self._document["model"])

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[bytes, str]]:
        return Tokenizer, (self.content, self._where)  # to worker processes


def _parse(content: bytes, where: str) -> tuple[dict[str, Any], tokenizers.Tokenizer]:
    try:
        document = parse_json(content)
        tokenizer_check.check_tokenizer_json(document)
        return document, tokenizers.Tokenizer.from_buffer(to_json(document))  # what was checked, and nothing else
    except BaseException as error:
        if not isinstance(error, Exception) and not _is_panic(error):
            raise
        raise RegardError(  # tokenizers raises plain Exception
            f"This is not a vocabulary that `tokenizers` can read: {str(error)[:200]}.",
            where=where,
            fix="Learn one with `regard tokenizer learn`.",
        ) from error


def _is_panic(error: BaseException) -> bool:
    """Whether a library written in Rust gave up: no Exception, and of a class that nobody can import."""
    return type(error).__name__ == "PanicException"


@contextmanager
def _translate_errors(texts: Sequence[object], where: str) -> Iterator[None]:
    """Errors that teach for what `tokenizers` says of texts that are none, or of a vocabulary that makes it panic."""
    try:
        yield
    except TypeError as error:
        raise _make_surrogate_error(texts, error) from error
    except BaseException as error:
        if not _is_panic(error):
            raise
        what = f"The vocabulary cannot cut this text: {str(error)[:200]}."
        raise RegardError(what, where=where, fix="Use a vocabulary that `regard tokenizer learn` made.") from error


def _make_surrogate_error(texts: Sequence[object], error: TypeError) -> Exception:
    """Python strings can hold halves of characters that no file can: say so, and where."""
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            return error
        for position, character in enumerate(text):
            if "\ud800" <= character <= "\udfff":
                return RegardError(
                    f"Character {position} of text {row} is a lone surrogate (U+{ord(character):04X}): no valid text.",
                    fix="Read it as UTF-8, or replace it: text.encode('utf-16', 'surrogatepass').decode('utf-16').",
                )
    return error
