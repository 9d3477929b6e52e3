"""Shards: samples as token ids, in memory here and on disk in `stored.py`, and the shards of a corpus.

A sample's streams are stored one after another: source, then target or tags. A shard of images has the stream `image`
of 8-bit values; all images have the same shape.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.data.example import Location
from regard.data.shards.open_arrays import keep_open

Tokens = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
SHARD_NAME = re.compile(r"\w[\w-]*")  # a file name, never a path into another folder
COLUMNS = ("file", "line", "languages", "label")


@dataclass(frozen=True, eq=False)
class Shard:
    """Samples as token ids, without special tokens; tasks add the ones they need."""

    name: str
    source: str  # the corpus source that the samples came from
    streams: tuple[str, ...]  # "source", "image" or "audio clip"; "target" or "tags" may follow
    tokens: Tokens
    table: NDArray[np.uint32]  # (columns, samples): lengths of the streams, file, line, languages, label
    files: tuple[str, ...]
    languages: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...] = ()  # of samples or of tags; numbered from 1, and 0 means none
    made_from: dict[str, str] = field(default_factory=dict)  # sha256 of the tokenizers and of the text
    sha256: str = ""  # of `.json`, which holds the sha256 of the other two files
    image_shape: tuple[int, int, int] | None = None  # channels, height and width of every image
    sample_rate: int | None = None  # of every audio clip, whose 16-bit samples are stored as if they had no sign

    def __len__(self) -> int:
        return self.table.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the tokens."""
        return self.tokens.dtype

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """Tokens of each stream and sample: (streams, samples)."""
        return self.table[: len(self.streams)]

    @cached_property
    def identity(self) -> str:
        """The sha256 of the content."""
        media = (self.image_shape, self.sample_rate)
        description: list[Any] = [self.streams, self.languages, self.labels, self.dtype.str]
        description += [value for value in media if value is not None]
        digest = hashlib.sha256(json.dumps(description).encode())
        digest.update(np.ascontiguousarray(self.table).data)
        digest.update(np.ascontiguousarray(self.tokens).data)
        return digest.hexdigest()

    @cached_property
    def largest(self) -> tuple[int, ...]:
        """The largest id of each stream."""
        tokens, lengths = self.tokens, self.lengths
        if len(lengths) == 1:
            return (int(tokens.max(initial=0)),)
        is_first = select_first_stream(lengths)
        return tuple(int(tokens[mask].max(initial=0)) for mask in (is_first, ~is_first))

    @property
    def has_statistics(self) -> bool:
        """Whether `largest` and `longest` are known without reading tokens and table."""
        return True

    @cached_property
    def longest(self) -> tuple[int, ...]:
        """The length of the longest sample of each stream."""
        return tuple(self.lengths.max(axis=1, initial=0).tolist())

    def offsets(self) -> NDArray[np.int64]:
        """Return where each sample begins in `tokens`, and the end of the last: (samples + 1,)."""
        return np.concatenate(([0], np.cumsum(self.lengths.sum(axis=0, dtype=np.int64))))

    def column(self, name: str) -> NDArray[np.uint32]:
        """Return the column "file", "line", "languages" or "label": (samples,)."""
        return self.table[len(self.streams) + COLUMNS.index(name)]

    def locate(self, sample: int) -> Location:
        """Return the file and line that a sample was read from."""
        return Location(self.files[self.column("file")[sample]], int(self.column("line")[sample]))


class SplitShard(Shard):
    """A shard whose samples are split into several of at most `max_length` tokens; no token is copied."""

    def __init__(self, whole: Shard, max_length: int) -> None:
        names = ("name", "source", "streams", "files", "languages", "labels", "made_from")
        fields: dict[str, Any] = {name: getattr(whole, name) for name in names}
        identity = hashlib.sha256(f"{whole.identity} cut {max_length}".encode()).hexdigest()
        self.__dict__.update(fields, image_shape=None, sample_rate=None, sha256="", identity=identity)
        self.__dict__.update(_whole=whole, _max_length=max_length)
        is_split = whole.longest[0] > max_length
        self.__dict__["_count"] = int(self._count_parts().sum()) if is_split else len(whole)

    _whole: Shard
    _max_length: int
    _count: int

    def __len__(self) -> int:
        return self._count

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the tokens."""
        return self._whole.dtype

    @property
    def tokens(self) -> Tokens:
        """The tokens of the shard before the split."""
        return self._whole.tokens

    @property
    def table(self) -> NDArray[np.uint32]:
        """The table of the parts."""
        return keep_open((self, "idx"), self._split_table)

    @property
    def largest(self) -> tuple[int, ...]:
        """The largest id of each stream."""
        return self._whole.largest

    @property
    def longest(self) -> tuple[int, ...]:
        """The length of the longest part."""
        return (min(self._whole.longest[0], self._max_length),)

    def _count_parts(self) -> NDArray[np.int64]:
        """Return into how many parts each sample is split."""
        return np.maximum(-(-self._whole.lengths[0].astype(np.int64) // self._max_length), 1)

    def _split_table(self) -> NDArray[np.uint32]:
        lengths, n_parts = self._whole.lengths[0].astype(np.int64), self._count_parts()
        table = np.repeat(self._whole.table, n_parts, axis=1)
        table[0] = self._max_length
        table[0, np.cumsum(n_parts) - 1] = lengths - (n_parts - 1) * self._max_length
        return table


def split_long(shard: Shard, max_length: int) -> Shard:
    """Split samples into several of at most `max_length` tokens, for tasks that do not pack documents."""
    if shard.streams != ("source",):
        raise RegardError(
            "Only samples with a single stream can be split.", location=shard.name, hint="Exclude long samples."
        )
    return SplitShard(shard, max_length)


def select_first_stream(lengths: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return which values of samples with two streams, (2, samples), belong to the first: to an image or a clip."""
    return np.repeat(np.tile([True, False], lengths.shape[1]), lengths.T.ravel())


class Shards:
    """The shards of a corpus. Samples are numbered across shards, and each source has a weight."""

    def __init__(self, shards: Sequence[Shard], weights: dict[str, float] | None = None) -> None:
        if not shards:
            raise RegardError("The corpus has no samples.", hint="Pass at least one source with text.")
        for shard in shards:
            if shard.streams != shards[0].streams:
                first_streams, shard_streams = " and ".join(shards[0].streams), " and ".join(shard.streams)
                raise RegardError(
                    f"{shards[0].source} has {first_streams}, but {shard.source} has {shard_streams}.",
                    hint="Train on one kind of source at a time.",
                )
            if shard.image_shape != shards[0].image_shape:
                raise RegardError(
                    f"{shards[0].source} has images of {describe_shape(shards[0].image_shape)}, but {shard.source} of "
                    f"{describe_shape(shard.image_shape)}.",
                    hint="Set the same size and channels for all sources: size = [28, 28], channels = 1.",
                )
            if shard.sample_rate != shards[0].sample_rate:
                raise RegardError(
                    f"{shards[0].source} has audio clips of {shards[0].sample_rate:,} samples per second, but "
                    f"{shard.source} of {shard.sample_rate:,}.",
                    hint=f"Convert one of them: `ffmpeg -i IN -ar {shards[0].sample_rate} OUT.wav`.",
                )
            if _tokenizer_fingerprints(shard) != _tokenizer_fingerprints(shards[0]):
                raise RegardError(
                    f"{shards[0].source} and {shard.source} were tokenized with different tokenizers.",
                    hint="Prepare the whole corpus with one tokenizer.",
                )
        self.shards = tuple(shards)
        self.streams = shards[0].streams
        self.image_shape = shards[0].image_shape
        self.sample_rate = shards[0].sample_rate
        self.weights = tuple((weights or {}).get(shard.source, 1.0) for shard in shards)
        self.counts = [len(shard) for shard in shards]
        self.sample_offsets = np.concatenate(([0], np.cumsum(self.counts, dtype=np.int64)))
        self.languages = tuple(sorted({pair for shard in shards for pair in shard.languages}))
        self.labels = tuple(sorted({label for shard in shards for label in shard.labels}))
        self.identity = hashlib.sha256("\n".join(shard.identity for shard in shards).encode()).hexdigest()

    def __len__(self) -> int:
        return int(self.sample_offsets[-1])

    def load_tokens(self, number: int) -> Tokens:
        """Return the tokens of a shard."""
        return self.shards[number].tokens

    def iter_pairs(self, rows: NDArray[np.int64] | None = None) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the source and target ids of all samples, or of these rows, in stored order."""
        for number, shard in enumerate(self.shards):
            tokens, offsets, lengths = self.load_tokens(number), shard.offsets()[:-1], shard.lengths[:2].T
            if rows is not None:
                first, end = self.sample_offsets[number : number + 2]
                own_rows = np.sort(rows[(rows >= first) & (rows < end)] - first)
                offsets, lengths = offsets[own_rows], lengths[own_rows]
            for start, (source_length, target_length) in zip(offsets.tolist(), lengths.tolist(), strict=True):
                ids = tokens[start : start + source_length + target_length].tolist()
                yield ids[:source_length], ids[source_length:]

    def use_labels(self, labels: tuple[str, ...]) -> None:
        """Use the label numbers of a model instead of the corpus's own.

        Raises:
            RegardError: If the corpus has a label that is not among `labels`.
        """
        if unknown_labels := set(self.labels) - set(labels):
            label_list = ", ".join(sorted(unknown_labels)[:5])
            raise RegardError(
                f"The model does not have these labels: {label_list}.", hint="Train with examples of them."
            )
        self.labels = labels

    def split_long(self, max_length: int) -> Self:
        """Return the corpus with samples split into several of at most `max_length` tokens; no token is copied."""
        weights = {shard.source: weight for shard, weight in zip(self.shards, self.weights, strict=True)}
        self.load_tables(number for number, shard in enumerate(self.shards) if shard.longest[0] > max_length)
        result = copy(self)
        Shards.__init__(result, [split_long(shard, max_length) for shard in self.shards], weights)
        return result

    def load_tables(self, numbers: Iterable[int]) -> None:
        """Load the tables of shards that are read next; does nothing for local shards."""

    def prefetch(self, numbers: Sequence[int]) -> None:
        """Prefetch the shards that are read next; does nothing for local shards."""

    def locate(self, sample: int) -> Location:
        """Return the file and line that a sample was read from."""
        shard = int(np.searchsorted(self.sample_offsets, sample, side="right")) - 1
        return self.shards[shard].locate(sample - int(self.sample_offsets[shard]))


def describe_shape(shape: tuple[int, int, int] | None) -> str:
    """Describe the shape of images: "28 x 28 pixels, 1 channel"."""
    if shape is None:
        return "no shape"
    channels, height, width = shape
    return f"{height} x {width} pixels, {pluralize(channels, 'channel')}"


def _tokenizer_fingerprints(shard: Shard) -> tuple[str | None, str | None, int]:
    return shard.made_from.get("source"), shard.made_from.get("target"), shard.dtype.itemsize
