"""Examples -> a shard of token ids."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.example import CorpusError, Example, Where
from regard.data.shards import Shard, Tokens
from regard.text.tokenizer import Tokenizer

AT_ONCE = 1 << 18  # characters: encodings take a hundred times the memory of their text
Stream = tuple[Tokens, NDArray[np.uint32]]  # all ids, and the length of each sample


def tokenise(
    examples: Sequence[Example],
    source: Tokenizer,
    target: Tokenizer,
    *,
    name: str = "memory",
    origin: str = "",
    text: str = "",
) -> Shard:
    """Cut examples that are alike (all pairs, all tagged, or neither) into tokens, as one shard.

    `origin` names their corpus source, `text` is the sha256 of their text, both for the record.
    """
    wide = max(source.size, target.size) > 1 << 16
    kind = np.dtype("<u4" if wide else "<u2")
    streams = {"source": _encoded(source, [example.source for example in examples], kind)}
    labels: tuple[str, ...] = ()
    if _all_or_none(examples, "target", lambda example: example.target is not None):
        streams["target"] = _encoded(target, [example.target or "" for example in examples], kind)
    if _all_or_none(examples, "tags", lambda example: example.tags is not None):
        labels = tuple(sorted({tag for example in examples for tag in example.tags or ()}))
        streams["tags"] = _joined([[_tagged(example, source, labels) for example in examples]], kind)
    else:
        labels = tuple(sorted({example.label for example in examples if example.label is not None}))
    languages = tuple(sorted({example.languages for example in examples}))
    files = tuple(dict.fromkeys(example.where.file for example in examples))
    columns = [
        _numbers(files, (example.where.file for example in examples)),
        (example.where.line for example in examples),
        _numbers(languages, (example.languages for example in examples)),
        _numbers((None, *labels), (example.label for example in examples)),
    ]
    facts = [np.fromiter(column, np.uint32, len(examples)) for column in columns]
    made_from = {"source": source.fingerprint, "target": target.fingerprint, "text": text}
    return Shard(
        name=name,
        source=origin,
        streams=tuple(streams),
        tokens=_in_turn(list(streams.values())),
        table=np.array([*(lengths for _, lengths in streams.values()), *facts], np.uint32),
        files=files,
        languages=languages,
        labels=labels,
        made_from={part: known for part, known in made_from.items() if part in streams or part == "text"},
    )


def packed_text(examples: Iterable[Example]) -> bytes:
    """Examples as bytes: the same text always gives the same bytes."""
    rows = [
        (one.where.file, one.where.line, one.source, one.target, one.label, one.tags, one.languages) for one in examples
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def unpacked_text(content: bytes) -> list[Example]:
    """The examples that `packed_text` wrote."""
    return [
        Example(Where(file, line), source, target, label, None if tags is None else tuple(tags), tuple(languages))
        for file, line, source, target, label, tags, languages in json.loads(content.decode("utf-8", "surrogatepass"))
    ]


def _encoded(tokenizer: Tokenizer, texts: list[str], kind: np.dtype[Any]) -> Stream:
    return _joined((tokenizer.encode_ids(some) for some in _pieces(texts)), kind)


def _joined(parts: Iterable[list[list[int]]], kind: np.dtype[Any]) -> Stream:
    """Lists of ids as one array and its lengths, part by part: Python's numbers take twenty times the room."""
    tokens: list[NDArray[Any]] = [np.zeros(0, kind)]
    lengths: list[NDArray[np.uint32]] = [np.zeros(0, np.uint32)]
    for part in parts:
        sizes = np.fromiter(map(len, part), np.uint32, len(part))
        lengths.append(sizes)
        tokens.append(np.fromiter(chain.from_iterable(part), kind, int(sizes.sum(dtype=np.int64))))
    return np.concatenate(tokens), np.concatenate(lengths)


def _in_turn(streams: list[Stream]) -> Tokens:
    """Of every sample one stream after another."""
    if len(streams) == 1:
        return streams[0][0]
    (first, one), (second, two) = streams
    tokens = np.empty(first.size + second.size, first.dtype)
    here = np.repeat(np.tile([True, False], one.size), np.stack((one, two), axis=1).ravel())
    tokens[here], tokens[~here] = first, second
    return tokens


def _pieces(texts: list[str]) -> Iterator[list[str]]:
    some: list[str] = []
    size = 0
    for text in texts:
        some.append(text)
        size += len(text)
        if size >= AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _all_or_none(examples: Sequence[Example], what: str, has: Callable[[Example], bool]) -> bool:
    """Whether the examples have a target (or tags); a mixture is refused with the first that differs."""
    for example in examples:
        if has(example) != has(examples[0]):
            kind = "has no" if has(examples[0]) else "has"
            raise CorpusError(
                f"This example {kind} {what}, unlike those before it.",
                where=str(example.where),
                fix="All examples of a source must be of one kind.",
            )
    return bool(examples) and has(examples[0])


def _numbers(names: Sequence[object], values: Iterable[object]) -> Iterator[int]:
    known = {name: number for number, name in enumerate(names)}
    return (known[value] for value in values)


def _tagged(example: Example, tokenizer: Tokenizer, labels: Sequence[str]) -> list[int]:
    """For each piece 1 + the tag of the word that begins with it, or 0 where none does."""
    encoding = tokenizer.encode(example.source)
    first, tags = first_pieces(example.source, encoding.offsets), example.tags or ()
    if len(first) != len(tags):
        raise CorpusError(f"{len(first)} words, but {len(tags)} tags.", where=str(example.where))
    if first.size and (first[-1] >= len(encoding.ids) or (np.diff(first) <= 0).any()):
        raise CorpusError(
            "Two words share a piece, so one of them has no place for its tag.",
            where=str(example.where),
            fix="Tag with a vocabulary whose pieces do not cross spaces.",
        )
    numbers = np.zeros(len(encoding.ids), np.int64)
    numbers[first] = [1 + labels.index(tag) for tag in tags]
    return numbers.tolist()


def first_pieces(text: str, spans: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Of every word, the first piece that reaches into it; spaces separate words.

    >>> first_pieces("gone up", [(0, 2), (2, 4), (4, 7)])  # "go", "ne", " up"
    array([0, 2])
    """
    ends = np.array([end for _, end in spans], np.int64)
    return np.searchsorted(ends, _word_begins(text), side="right")


def _word_begins(text: str) -> NDArray[np.int64]:
    """Where words begin: characters after a space, or at the start."""
    return np.array(
        [at for at, character in enumerate(text) if character != " " and (at == 0 or text[at - 1] == " ")], np.int64
    )
