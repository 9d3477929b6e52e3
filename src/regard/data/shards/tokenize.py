"""Make a shard from examples: texts become token ids, images pixels or codebook tokens, audio clips samples."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.data.codebook import Codebook
from regard.data.example import AudioClip, CorpusError, Example, Image, Location
from regard.data.shards.shard import Shard, Tokens, describe_shape
from regard.text.pretokenize import read_gap, read_user_normalizer
from regard.text.special_marks import MARK
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

BATCH_CHARACTERS = 1 << 18  # characters encoded at a time: encodings take 100 times the memory of their text
MAX_WORD_CHARACTERS = 1 << 22  # characters of the words whose ids are remembered: some 500,000 words, 100 MB
EMPTY_IMAGE, EMPTY_AUDIO = Image(0, 0, 0, b""), AudioClip(0, b"")
TokenStream = tuple[Tokens, NDArray[np.uint32]]  # all ids, and the length of each sample


def store_examples(
    examples: Sequence[Example],
    tokenizers: TokenizerPair | None,
    *,
    name: str = "memory",
    origin: str = "",
    text_sha256: str = "",
) -> Shard:
    """Make a shard from examples of one kind: all pairs, all tagged, all images, or all single texts.

    Args:
        examples: Examples of one source of the corpus.
        tokenizers: Tokenizers of source and target; for images a codebook, or None to store their pixels. Audio clips
            with labels need none.
        name: The shard's name.
        origin: The name of the corpus source; stored with the shard.
        text_sha256: The sha256 of the serialized examples; stored with the shard.

    Raises:
        CorpusError: If examples of different kinds are mixed, tags do not match the words, or images differ in shape.
    """
    labels: tuple[str, ...] = ()
    image_shape, sample_rate, fingerprints = None, None, dict[str, str]()
    if _check_all_or_none(examples, "image", lambda example: example.image is not None):
        image_shape = (examples[0].image or EMPTY_IMAGE).shape
        streams = _add_texts({"image": _join_images(examples)}, examples, tokenizers)
        if "target" in streams and tokenizers is not None:
            fingerprints = {"target": tokenizers.target.fingerprint}
        elif tokenizers is not None:
            streams = {"source": _encode_images(examples, streams["image"][0], tokenizers)}
            image_shape, fingerprints = None, {"source": tokenizers.source.fingerprint}
    elif _check_all_or_none(examples, "audio", lambda example: example.audio is not None):
        streams, sample_rate = _store_audio(examples, tokenizers), (examples[0].audio or EMPTY_AUDIO).rate
        fingerprints = {} if tokenizers is None else {"target": tokenizers.target.fingerprint}
    elif tokenizers is None:
        message = "These examples are text, but there is no tokenizer."
        raise CorpusError(
            message, location=str(examples[0].location), hint="Pass images, or use a model that reads tokens."
        )
    else:
        streams, labels = _tokenize(examples, tokenizers.source, tokenizers.target)
        fingerprints = {"source": tokenizers.source.fingerprint, "target": tokenizers.target.fingerprint}
    if "tags" not in streams:
        labels = tuple(sorted({example.label for example in examples if example.label is not None}))
    languages = tuple(sorted({example.languages for example in examples}))
    files = tuple(dict.fromkeys(example.location.file for example in examples))
    columns = [
        _to_numbers(files, (example.location.file for example in examples)),
        (example.location.line for example in examples),
        _to_numbers(languages, (example.languages for example in examples)),
        _to_numbers((None, *labels), (example.label for example in examples)),
    ]
    info_columns = [np.fromiter(column, np.uint32, len(examples)) for column in columns]
    return Shard(
        name=name,
        source=origin,
        streams=tuple(streams),
        tokens=_interleave(list(streams.values())),
        table=np.array([*(lengths for _, lengths in streams.values()), *info_columns], np.uint32),
        files=files,
        languages=languages,
        labels=labels,
        made_from={
            **{side: fingerprint for side, fingerprint in fingerprints.items() if side in streams},
            "text": text_sha256,
        },
        image_shape=image_shape,
        sample_rate=sample_rate,
    )


def _tokenize(
    examples: Sequence[Example], source: Tokenizer, target: Tokenizer
) -> tuple[dict[str, TokenStream], tuple[str, ...]]:
    """Return the token streams of texts and the tag labels."""
    needs_uint32 = max(source.size, target.size) > 1 << 16
    dtype = np.dtype("<u4" if needs_uint32 else "<u2")
    streams = {"source": _encode(source, [example.source for example in examples], dtype)}
    labels: tuple[str, ...] = ()
    if _check_all_or_none(examples, "target", lambda example: example.target is not None):
        streams["target"] = _encode(target, [example.target or "" for example in examples], dtype)
    if _check_all_or_none(examples, "tags", lambda example: example.tags is not None):
        labels = tuple(sorted({tag for example in examples for tag in example.tags or ()}))
        streams["tags"] = _concatenate([[_encode_tags(example, source, labels) for example in examples]], dtype)
    return streams, labels


def _join_images(examples: Sequence[Example]) -> TokenStream:
    """Return the pixels of all images, and the number of values of each."""
    images = [example.image or EMPTY_IMAGE for example in examples]
    for example, image in zip(examples, images, strict=True):
        if image.shape != images[0].shape:
            message = (
                f"This image has {describe_shape(image.shape)}; earlier images have {describe_shape(images[0].shape)}."
            )
            hint = "Set the size and the channels of the source, e.g. size = [28, 28] and channels = 1."
            raise CorpusError(message, location=str(example.location), hint=hint)
    pixels = np.frombuffer(b"".join(image.pixels for image in images), np.uint8)
    return pixels, np.full(len(images), len(images[0].pixels), np.uint32)


def _encode_images(examples: Sequence[Example], pixels: Tokens, tokenizers: TokenizerPair) -> TokenStream:
    """Return the tokens of images: the label, then the pixels row after row."""
    shape = (examples[0].image or EMPTY_IMAGE).shape
    codebook = Codebook(tokenizers.source)
    first_tokens = []
    for example in examples:
        try:
            first_tokens.append(codebook.find_label(example.label))
        except RegardError as error:
            raise CorpusError(error.message, location=str(example.location), hint=error.hint) from None
    rows = np.concatenate(
        (np.array(first_tokens)[:, None], codebook.encode(pixels.astype(np.uint8).reshape(-1, *shape))), axis=1
    )
    return rows.astype("<u2").ravel(), np.full(len(rows), rows.shape[1], np.uint32)


def _store_audio(examples: Sequence[Example], tokenizers: TokenizerPair | None) -> dict[str, TokenStream]:
    """Return the samples of all audio clips and the tokens of their transcripts."""
    audio = [example.audio or EMPTY_AUDIO for example in examples]
    for example, clip in zip(examples, audio, strict=True):
        if clip.rate != audio[0].rate:
            message = f"This audio clip has {clip.rate:,} samples per second; earlier clips have {audio[0].rate:,}."
            hint = f"Use one sample rate for all audio clips: `ffmpeg -i IN -ar {audio[0].rate} OUT.wav`."
            raise CorpusError(message, location=str(example.location), hint=hint)
    lengths = np.array([len(clip) for clip in audio], np.uint32)
    samples = np.frombuffer(b"".join(clip.samples for clip in audio), "<u2")
    return _add_texts({"audio": (samples, lengths)}, examples, tokenizers)


def _add_texts(
    streams: dict[str, TokenStream], examples: Sequence[Example], tokenizers: TokenizerPair | None
) -> dict[str, TokenStream]:
    """Return the stream of images or audio clips and the stream of their texts, if any, with the same dtype."""
    if not _check_all_or_none(examples, "text", lambda example: example.target is not None):
        return streams
    ((name, (values, lengths)),) = streams.items()
    if tokenizers is None:
        message = f"This {name} has a text, but there is no tokenizer."
        raise CorpusError(message, location=str(examples[0].location), hint="Pass labels, or a model that writes text.")
    dtype = np.dtype("<u4" if tokenizers.target.size > 1 << 16 else "<u2")
    target = _encode(tokenizers.target, [example.target or "" for example in examples], dtype)
    return {name: (values.astype(dtype), lengths), "target": target}


def serialize_examples(examples: Iterable[Example]) -> bytes:
    """Serialize examples; the same examples always give the same bytes."""
    rows = [
        (
            example.location.file,
            example.location.line,
            example.source,
            example.target,
            example.label,
            example.tags,
            example.languages,
            *(() if example.image is None else ((*example.image.shape, b64encode(example.image.pixels).decode()),)),
            *(() if example.audio is None else ((example.audio.rate, b64encode(example.audio.samples).decode()),)),
        )
        for example in examples
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def deserialize_examples(content: bytes) -> list[Example]:
    """Return the examples that `serialize_examples` wrote."""
    return [
        Example(
            Location(file, line),
            source,
            target,
            label,
            None if tags is None else tuple(tags),
            tuple(languages),
            _deserialize_image(*media[0]) if media and len(media[0]) == 4 else None,
            AudioClip(media[0][0], b64decode(media[0][1])) if media and len(media[0]) == 2 else None,
        )
        for file, line, source, target, label, tags, languages, *media in json.loads(
            content.decode("utf-8", "surrogatepass")
        )
    ]


def _deserialize_image(channels: int, height: int, width: int, pixels: str) -> Image:
    return Image(channels, height, width, b64decode(pixels))


class WordEncoder:
    """Encodes texts like `Tokenizer.encode_ids`, but encodes each distinct word only once.

    Texts with white space other than single spaces are encoded as a whole, because tokens may cross words. The same
    applies to tokenizers that normalize text or whose tokens may cross spaces.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._ids, self._characters = tokenizer, dict[str, tuple[int, ...]](), 0
        normalizer = read_user_normalizer(tokenizer.document.get("normalizer"))
        self._gap = read_gap(tokenizer.document) if normalizer is None else None

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Encode texts to ids."""
        if self._gap is None:
            return self._tokenizer.encode_ids(texts)
        words = [self._split(text) for text in texts]
        new = list(set(chain.from_iterable(words)).difference(self._ids))
        try:
            self._ids.update(zip(new, map(tuple, self._tokenizer.encode_ids(new)), strict=True))
        except RegardError:
            return self._tokenizer.encode_ids(texts)  # raises an error that names the text, not the word
        ids = [list(chain.from_iterable(map(self._ids.__getitem__, row))) for row in words]
        self._characters += sum(map(len, new))
        if self._characters > MAX_WORD_CHARACTERS:
            self._ids, self._characters = {}, 0
        return ids

    def _split(self, text: str) -> list[str]:
        """Split a text into words; they keep the space before them if it is part of a token (`read_gap`)."""
        words = text.split(" ")
        if words != text.split() or MARK in text:
            return [text]
        return words if self._gap else text.replace(" ", "\n ").split("\n")


@lru_cache(maxsize=2)  # the source and the target tokenizer, whose shards share most words
def find_word_encoder(tokenizer: Tokenizer) -> WordEncoder:
    """Return the encoder of a tokenizer; `cache_clear` frees its memory."""
    return WordEncoder(tokenizer)


def _encode(tokenizer: Tokenizer, texts: list[str], dtype: np.dtype[Any]) -> TokenStream:
    return _concatenate(map(find_word_encoder(tokenizer).encode, _batch_texts(texts)), dtype)


def _concatenate(parts: Iterable[list[list[int]]], dtype: np.dtype[Any]) -> TokenStream:
    """Concatenate lists of ids into one array with lengths, part by part: Python integers take 20 times the memory."""
    tokens: list[NDArray[Any]] = [np.zeros(0, dtype)]
    lengths: list[NDArray[np.uint32]] = [np.zeros(0, np.uint32)]
    for part in parts:
        sizes = np.fromiter(map(len, part), np.uint32, len(part))
        lengths.append(sizes)
        tokens.append(np.fromiter(chain.from_iterable(part), dtype, int(sizes.sum(dtype=np.int64))))
    return np.concatenate(tokens), np.concatenate(lengths)


def _interleave(streams: list[TokenStream]) -> Tokens:
    """Store the streams of every sample one after another."""
    if len(streams) == 1:
        return streams[0][0]
    (first_tokens, first_lengths), (second_tokens, second_lengths) = streams
    tokens = np.empty(first_tokens.size + second_tokens.size, first_tokens.dtype)
    is_first = np.repeat(
        np.tile([True, False], first_lengths.size), np.stack((first_lengths, second_lengths), axis=1).ravel()
    )
    tokens[is_first], tokens[~is_first] = first_tokens, second_tokens
    return tokens


def _batch_texts(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    n_characters = 0
    for text in texts:
        batch.append(text)
        n_characters += len(text)
        if n_characters >= BATCH_CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


def _check_all_or_none(examples: Sequence[Example], field: str, has: Callable[[Example], bool]) -> bool:
    """Return whether the examples have a field; raise CorpusError if some have it and others do not."""
    is_expected = bool(examples) and has(examples[0])
    for example in examples:
        if has(example) != is_expected:
            kind = "has no" if is_expected else "has"
            raise CorpusError(
                f"This example {kind} {field}, unlike earlier examples.",
                location=str(example.location),
                hint="Use the same fields for all examples of a source.",
            )
    return is_expected


def _to_numbers(names: Sequence[object], values: Iterable[object]) -> Iterator[int]:
    number_of = {name: number for number, name in enumerate(names)}
    return (number_of[value] for value in values)


def _encode_tags(example: Example, tokenizer: Tokenizer, labels: Sequence[str]) -> list[int]:
    """Return for each token 1 + the tag of the word that starts with it, or 0 if no word does.

    Tags of words without tokens are dropped.
    """
    encoding = tokenizer.encode(example.source)
    first_tokens, tags = find_first_tokens(example.source, encoding.offsets), example.tags or ()
    if len(first_tokens) != len(tags):
        raise CorpusError(
            f"The sentence has {len(first_tokens)} words, but {len(tags)} tags.", location=str(example.location)
        )
    ends = _start_offsets(example.source) + [len(word) for word in example.source.split(" ") if word]
    token_starts = np.array([*(start for start, _ in encoding.offsets), len(example.source)])
    is_read = token_starts[first_tokens] < ends  # a normalizer may remove a whole word, e.g. U+FE0F of an emoji
    first_tokens = first_tokens[is_read]
    if (np.diff(first_tokens) <= 0).any():
        raise CorpusError(
            "Two words share a token, so one of them has no token for its tag.",
            location=str(example.location),
            hint="Use a tokenizer whose tokens do not cross spaces.",
        )
    numbers = np.zeros(len(encoding.ids), np.int64)
    numbers[first_tokens] = [1 + labels.index(tag) for tag, has_token in zip(tags, is_read, strict=True) if has_token]
    return numbers.tolist()


def find_first_tokens(text: str, spans: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return for every word the index of the first token that overlaps it; spaces separate words.

    >>> find_first_tokens("gone up", [(0, 2), (2, 4), (4, 7)])  # "go", "ne", " up"
    array([0, 2])
    """
    ends = np.array([end for _, end in spans], np.int64)
    return np.searchsorted(ends, _start_offsets(text), side="right")


def _start_offsets(text: str) -> NDArray[np.int64]:
    """Return where words begin: at characters after a space, or at the start."""
    return np.array(
        [i for i, character in enumerate(text) if character != " " and (i == 0 or text[i - 1] == " ")], np.int64
    )
