"""The tokenizer: text to ids, offsets and word ids, and back.

    tokenizer = Tokenizer.load(Path("tokenizer.json"))
    tokenizer.encode("low lower").ids
    tokenizer.decode([17, 4])

The file is a Hugging Face `tokenizer.json`, and encoding uses the `tokenizers` library. A `Tokenizer` is immutable; two
are equal if their files are byte-identical. `regard.text.specials` explains how it stores the roles of special tokens.
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
from regard.text import pretokenize, sentencepiece, specials, tokenizer_check
from regard.text.detokenize import StreamingDecoder, TokenBytes
from regard.text.special_marks import MARK, SpecialMarks


@dataclass(frozen=True, slots=True)
class Encoding:
    """Token ids with the character offsets (start, end) and the word number of each token.

    Words are separated by spaces. Special tokens have the word number None.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]


class Tokenizer:
    """Encode text to ids and decode ids to text.

    Args:
        content: The bytes of a `tokenizer.json`.
        location: Its path, for error messages.
    """

    def __init__(self, content: bytes, location: str = "tokenizer.json") -> None:
        self.content = content
        document, self.backend = _parse(content, location)
        self.specials = specials.read_special_ids(document, location)
        self.size: int = self.backend.get_vocab_size(with_added_tokens=True)
        self.backend.encode_special_tokens = True  # the string "<pad>" in a text is ordinary text
        self.document = document  # the parsed file; do not change it
        self._normalizer = pretokenize.read_user_normalizer(document.get("normalizer"))
        extra = sorted(self.specials.extra, key=len, reverse=True)
        self._extra_pattern = re.compile(f"({'|'.join(map(re.escape, extra))})") if extra else None
        self._where = location

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a `tokenizer.json`, or a unigram model of SentencePiece (`.model`, `.spm`).

        Raises:
            RegardError: The file cannot be read or is not a safe tokenizer file.
        """
        try:
            content = read_regular_file(path, limits.DOCUMENT)
        except OSError as error:
            message, hint = (
                f"The tokenizer file cannot be read: {error.strerror}.",
                "Learn one with `regard tokenizer learn`.",
            )
            raise RegardError(message, location=str(path), hint=hint) from error
        if path.suffix in sentencepiece.SUFFIXES:
            content = sentencepiece.read_model(content, location=str(path))
        return cls(content, location=str(path))

    def save(self, path: Path) -> None:
        """Write the file atomically."""
        write_atomic(path, self.content)

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of the file's bytes."""
        return hashlib.sha256(self.content).hexdigest()

    def add_tokens(self, texts: Sequence[str]) -> "Tokenizer":
        """Return a tokenizer with these strings as extra tokens: each occurrence becomes a single token.

        Strings that are already a single token are skipped.

        Raises:
            RegardError: A string is too short or is a special token.
        """
        vocabulary, control = set(self.vocabulary), {self.vocabulary[token] for token in self.specials.control}
        for text in texts:
            if len(text) < 2 or text in control:
                message = f"'{text}' is a special token." if text in control else f"The token '{text}' is too short."
                raise RegardError(message, hint="Choose another name with at least two characters.")
        new = [text for text in dict.fromkeys(texts) if text not in vocabulary]
        if not new:
            return self
        added = [specials.make_added_token(text, self.size + number) for number, text in enumerate(new)]
        document = {**self.document, "added_tokens": [*self.document["added_tokens"], *added]}
        return Tokenizer(to_json(document), location=self._where)

    def encode(self, text: str) -> Encoding:
        """Encode a text with offsets and word ids; adds no special tokens."""
        encoding = self.encode_with_offsets([text])[0]
        ids = encoding.ids
        return Encoding(ids, encoding.offsets, self.word_ids(ids))

    def encode_ids(self, texts: list[str]) -> list[list[int]]:
        """Encode many texts to ids only (faster than `encode`); adds no special tokens.

        The name of a special token is ordinary text unless a chat template has marked it (`special_marks`).
        """
        with _translate_errors(texts, self._where):
            if any(MARK in text for text in texts):
                return [self._encode_marked(text) for text in texts]
            if any(len(text) > pretokenize.LONG_TEXT for text in texts):
                return [self._encode_long(text) for text in texts]
            return self._encode_batch(texts)

    def _encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.backend.encode_batch_fast(texts, add_special_tokens=False)]

    def _encode_long(self, text: str) -> list[int]:
        """Encode a text in chunks: an encoding takes much more memory than its ids."""
        parts = pretokenize.split_long_text(text, self._gap)
        return [token for part in parts for token in self._encode_batch([part])[0]]

    @cached_property
    def _gap(self) -> int | None:
        return pretokenize.read_gap(self.document)

    def _encode_marked(self, text: str) -> list[int]:
        parts = self.special_marks.split(text)  # names at odd indices
        if any(map(self.special_marks.find, parts[::2])):  # a user wrote a name: only marked ones are tokens
            ids_by_text = self.backend.get_vocab(with_added_tokens=True)
            encoded = self._encode_batch(parts)
            return [
                token
                for index, (part, ids) in enumerate(zip(parts, encoded, strict=True))
                for token in ([ids_by_text[part]] if index % 2 else ids)
            ]
        backend = self._special_backend if len(parts) > 1 else self.backend
        return backend.encode("".join(parts), add_special_tokens=False).ids

    @cached_property
    def special_marks(self) -> SpecialMarks:
        """Finds the names of special tokens."""
        return SpecialMarks(self.vocabulary[token] for token in self.specials.control)

    @cached_property
    def _special_backend(self) -> tokenizers.Tokenizer:
        """Finds special tokens in texts, with the same spaces around them as in `transformers`."""
        return tokenizers.Tokenizer.from_buffer(to_json(self.document))

    def encode_with_offsets(self, texts: list[str]) -> list[tokenizers.Encoding]:
        """Return the encodings of `tokenizers`; their `word_ids` number pre-tokens, which are finer than words."""
        with _translate_errors(texts, self._where):
            return self.backend.encode_batch(texts, add_special_tokens=False)

    def decode(self, ids: Sequence[int], prefix: Sequence[int] = ()) -> str:
        """Decode ids to text. Special tokens are omitted; the unknown token is shown, e.g. as <unk>.

        Args:
            ids: Token ids.
            prefix: Ids before `ids`. They are not decoded, but determine whether the text starts with a space.

        Raises:
            RegardError: An id is outside the vocabulary.
        """
        if not prefix:
            return self.token_bytes.decode(ids)
        decoder = self.make_streaming_decoder()
        for token in prefix:
            decoder.push(token)
        return "".join([decoder.push(token) for token in ids]) + decoder.finish()

    def token_texts(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the text of each token alone; special tokens and continuations have their names, e.g. <s>, ##ing."""
        names, token_bytes = self.vocabulary, self.token_bytes
        is_wordpiece = token_bytes.join_style == "wordpiece"
        return tuple(
            names[token]
            if token in token_bytes.control or (is_wordpiece and names[token].startswith(pretokenize.CONTINUATION))
            else token_bytes.bytes[token].decode("utf-8", "replace")
            for token in ids
        )

    def make_streaming_decoder(self) -> StreamingDecoder:
        """Make a decoder for ids that arrive one by one; it returns only complete characters."""
        return StreamingDecoder(self.token_bytes)

    def normalize(self, text: str) -> str:
        """Return the text after a round trip without unknown tokens: unchanged, or normalized."""
        if self._normalizer is None:
            return text
        # Extra tokens are not normalized; `split` puts them at odd indices.
        parts = self._extra_pattern.split(text) if self._extra_pattern else [text]
        return "".join(part if n % 2 else self._normalizer.normalize_str(part) for n, part in enumerate(parts))

    def word_ids(self, ids: Sequence[int]) -> list[int | None]:
        """Return the word number of each token, from the ids alone; None for special tokens.

        A whitespace token belongs to the preceding word.
        """
        is_start, is_end, control = (
            self.token_bytes.is_start,
            self.token_bytes.is_end,
            self.token_bytes.control,
        )
        numbers: list[int | None] = []
        number, is_new = -1, True
        for index, token in enumerate(ids):
            if token in control:
                numbers.append(None)
                is_new = True
            elif self.token_bytes.bytes[token].isspace() and self._is_extra_space(ids, index, is_new):
                numbers.append(max(number, 0))
            else:
                number += is_new or is_start[token]
                numbers.append(number)
                is_new = is_end[token]
        return numbers

    def _is_extra_space(self, ids: Sequence[int], index: int, is_new: bool) -> bool:
        """Whether a whitespace token neither starts the next word nor ends the previous one."""
        if self.token_bytes.join_style == "marks_after":
            return is_new
        following = ids[index + 1] if index + 1 < len(ids) else None
        return following is None or following in self.token_bytes.control or self.token_bytes.is_start[following]

    @cached_property
    def vocabulary(self) -> list[str]:
        """The tokens by id, as stored in the file."""
        id_of_text = self.backend.get_vocab(with_added_tokens=True)
        return sorted(id_of_text, key=id_of_text.__getitem__)

    @cached_property
    def token_bytes(self) -> TokenBytes:
        """The bytes of each token."""
        return TokenBytes(self.vocabulary, self.document.get("decoder"), self.specials, self._where)

    @property
    def model(self) -> dict[str, Any]:
        """The `model` of the file: the merges of BPE, the scores of a unigram model."""
        return dict(self.document["model"])

    def __repr__(self) -> str:
        languages = f", languages {' '.join(self.specials.languages)}" if self.specials.languages else ""
        return f"Tokenizer({self.document['model'].get('type', 'unknown')}, {self.size:,} tokens{languages})"

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[bytes, str]]:
        return Tokenizer, (self.content, self._where)  # for worker processes


def _parse(content: bytes, location: str) -> tuple[dict[str, Any], tokenizers.Tokenizer]:
    try:
        document = parse_json(content)
        tokenizer_check.check_tokenizer_json(document)
        return document, tokenizers.Tokenizer.from_buffer(to_json(document))  # parses exactly the checked document
    except BaseException as error:
        if not isinstance(error, Exception) and not _is_panic(error):
            raise
        raise RegardError(  # `tokenizers` raises bare Exception
            f"This is not a valid tokenizer file: {str(error)[:200]}.",
            location=location,
            hint="Learn one with `regard tokenizer learn`.",
        ) from error


def _is_panic(error: BaseException) -> bool:
    """Whether Rust code panicked: the exception is not an `Exception`, and its class cannot be imported."""
    return type(error).__name__ == "PanicException"


@contextmanager
def _translate_errors(texts: Sequence[object], location: str) -> Iterator[None]:
    """Raise a `RegardError` for invalid strings and for panics in `tokenizers`."""
    try:
        yield
    except TypeError as error:
        raise _make_surrogate_error(texts, error) from error
    except BaseException as error:
        if not _is_panic(error):
            raise
        message = f"The tokenizer failed on this text: {str(error)[:200]}."
        raise RegardError(
            message, location=location, hint="Use a tokenizer made by `regard tokenizer learn`."
        ) from error


def _make_surrogate_error(texts: Sequence[object], error: TypeError) -> Exception:
    """Return an error that locates the first lone surrogate, or `error` if there is none."""
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            return error
        for position, character in enumerate(text):
            if "\ud800" <= character <= "\udfff":
                return RegardError(
                    f"Character {position} of text {row} is a lone surrogate (U+{ord(character):04X}), not valid text.",
                    hint="Read it as UTF-8, or replace it: text.encode('utf-16', 'surrogatepass').decode('utf-16').",
                )
    return error
