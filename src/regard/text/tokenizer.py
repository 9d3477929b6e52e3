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
from regard.base.documents import parse_json
from regard.base.errors import RegardError
from regard.base.files import read_regular_file, write_atomic
from regard.text import specials, trusted, units
from regard.text.stream import Pieces, Stream


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text as ids, and for each of them the characters it stands for and the number of its word.

    A word is what spaces separate, with one of the spaces beside it. Special tokens belong to none.
    """

    ids: list[int]
    spans: list[tuple[int, int]]
    words: list[int | None]


class Tokenizer:
    """Text to ids and back, by the file whose bytes it is given."""

    def __init__(self, content: bytes, where: str = "tokenizer.json") -> None:
        self.content = content
        document, self.core = _parse(content, where)
        self.specials = specials.read(document, where)
        self.size: int = self.core.get_vocab_size(with_added_tokens=True)
        self.core.encode_special_tokens = True  # "<pad>" in a text is text
        self._document = document
        self._normaliser = units.chosen(document.get("normalizer"))
        extra = sorted(self.specials.extra, key=len, reverse=True)
        self._extra = re.compile(f"({'|'.join(map(re.escape, extra))})") if extra else None
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
        encoding = self.encode_plain([text])[0]
        ids = encoding.ids
        return Encoding(ids, encoding.offsets, self.words(ids))

    def encode_ids(self, texts: list[str]) -> list[list[int]]:
        """Ids alone, of many texts: the quick way."""
        with _calm(texts, self._where):
            return [encoding.ids for encoding in self.core.encode_batch_fast(texts, add_special_tokens=False)]

    def encode_plain(self, texts: list[str]) -> list[tokenizers.Encoding]:
        """What `tokenizers` itself returns, with offsets and its own (finer) words."""
        with _calm(texts, self._where):
            return self.core.encode_batch(texts, add_special_tokens=False)

    def decode(self, ids: Sequence[int], after: Sequence[int] = ()) -> str:
        """The text; special tokens are left out, and what was unknown shows as its token, e.g. <unk>.

        `after` are ids that stand before it: whether a space belongs before the first word depends on them.
        """
        if not after:
            return self.pieces.text(ids)
        stream = self.stream()
        for token in after:
            stream.push(token)
        return "".join([stream.push(token) for token in ids]) + stream.finish()

    def stream(self) -> Stream:
        """A decoder for ids that arrive one by one; it never gives out half a character."""
        return Stream(self.pieces)

    def normalise(self, text: str) -> str:
        """What comes back of a text that has nothing unknown: itself, unless the vocabulary normalises."""
        if self._normaliser is None:
            return text
        parts = self._extra.split(text) if self._extra else [text]  # extra tokens stay as they are, at odd places
        return "".join(part if n % 2 else self._normaliser.normalize_str(part) for n, part in enumerate(parts))

    def words(self, ids: Sequence[int]) -> list[int | None]:
        """The number of each id's word, from the ids alone; None for special tokens."""
        opens, closes, control = self.pieces.opens, self.pieces.closes, self.pieces.control
        numbers: list[int | None] = []
        number, fresh = -1, True
        for token in ids:
            if token in control:
                numbers.append(None)
                fresh = True
            else:
                number += fresh or opens[token]
                numbers.append(number)
                fresh = closes[token]
        return numbers

    @cached_property
    def vocabulary(self) -> list[str]:
        """The pieces by id, as the file writes them."""
        ids = self.core.get_vocab(with_added_tokens=True)
        return sorted(ids, key=ids.__getitem__)

    @cached_property
    def pieces(self) -> Pieces:
        """What each id stands for, as text."""
        return Pieces(self.vocabulary, self._document.get("decoder"), self.specials, self._where)

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
        trusted.check(document)
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
def _calm(texts: Sequence[object], where: str) -> Iterator[None]:
    """Errors that teach for what `tokenizers` says of texts that are none, or of a vocabulary that makes it panic."""
    try:
        yield
    except TypeError as error:
        raise _no_text(texts, error) from error
    except BaseException as error:
        if not _is_panic(error):
            raise
        what = f"The vocabulary cannot cut this text: {str(error)[:200]}."
        raise RegardError(what, where=where, fix="Use a vocabulary that `regard tokenizer learn` made.") from error


def _no_text(texts: Sequence[object], error: TypeError) -> Exception:
    """Python strings can hold halves of characters that no file can: say so, and where."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            return error
        for place, character in enumerate(text):
            if "\ud800" <= character <= "\udfff":
                return RegardError(
                    f"Character {place} of text {number} is a lone surrogate (U+{ord(character):04X}): no valid text.",
                    fix="Read it as UTF-8, or replace it: text.encode('utf-16', 'surrogatepass').decode('utf-16').",
                )
    return error
