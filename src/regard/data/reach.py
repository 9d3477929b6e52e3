"""The tokens of a window of shards within reach: from picked samples to records, a whole batch at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.order import Picked
from regard.data.rows import Numbers, Records
from regard.data.shards import Shard, Shards


class Reach:
    """Reads samples of a few shards; what it keeps of them is one number a sample, the rest stays where it is."""

    def __init__(self, shards: Shards, numbers: Sequence[int], streams: int) -> None:
        near = [shards.shards[number] for number in numbers]
        self.numbers = tuple(numbers)
        self._bases = shards.bases
        self._tokens: list[memoryview] = [memoryview(b"")] * len(shards.shards)
        self._kind: np.dtype[Any] = shards.shards[0].tokens.dtype
        self._shift = np.zeros(len(shards.shards), np.int64)  # from a sample's number to its place in the tables here
        place = 0
        for number, shard in zip(numbers, near, strict=True):
            self._tokens[number] = shards.tokens(number).data
            self._shift[number] = place - shards.bases[number]
            place += len(shard)
        self._begins = np.concatenate([shard.begins()[:-1] for shard in near])
        self._lengths = np.concatenate([shard.lengths[:streams] for shard in near], axis=1)
        self._languages = np.concatenate([_renamed(shard, "languages", shards.languages) for shard in near])
        self._labels = np.concatenate([_renamed(shard, "label", (None, *shards.labels)) for shard in near]) - 1
        self._tags = [_table((None, *shard.labels), (None, *shards.labels)) for shard in shards.shards]
        self._tagged = shards.streams[:streams][-1] == "tags"

    def records(self, picked: Picked) -> Records:
        """The stored tokens of a batch."""
        shards = np.searchsorted(self._bases, picked.samples, side="right") - 1
        places = picked.samples + self._shift[shards]
        begins, lengths = self._begins[places], self._lengths.take(places, axis=1).astype(np.int64)
        wholes = None
        if picked.begins is not None and picked.lengths is not None:  # a piece also reads the token before it
            wholes = lengths[0]
            ends = begins + np.minimum(picked.begins + picked.lengths, wholes)
            begins = begins + np.maximum(picked.begins - 1, 0)
            lengths = picked.lengths[None]
        else:
            ends = begins + lengths.sum(axis=0)
        return Records(
            tokens=self._gathered(shards, begins, ends),
            lengths=lengths,
            samples=picked.samples,
            draws=picked.draws,
            languages=self._languages[places],
            labels=self._labels[places],
            begins=picked.begins,
            wholes=wholes,
            rows=picked.rows,
        )

    def _gathered(self, shards: Numbers, begins: Numbers, ends: Numbers) -> NDArray[np.integer]:
        tokens = self._tokens
        stretches = zip(shards.tolist(), begins.tolist(), ends.tolist(), strict=True)
        gathered = b"".join([tokens[shard][begin:end] for shard, begin, end in stretches])  # twice as quick as NumPy's
        records = np.frombuffer(gathered, self._kind)
        return self._retagged(records, shards, ends - begins) if self._tagged else records

    def _retagged(self, tokens: NDArray[np.integer], shards: Numbers, sizes: Numbers) -> NDArray[np.integer]:
        """Shards number their tags themselves: the second half of each sample gets the corpus' numbers."""
        tokens = tokens.astype(np.int64)
        end = 0
        for shard, size in zip(shards.tolist(), sizes.tolist(), strict=True):
            begin, end = end + size // 2, end + size
            tokens[begin:end] = self._tags[shard][tokens[begin:end]]
        return tokens


def _renamed(shard: Shard, column: str, names: Sequence[object]) -> Numbers:
    """A column of a shard, with the corpus' numbers in place of the shard's."""
    own: Sequence[object] = shard.languages if column == "languages" else (None, *shard.labels)
    return _table(own, names)[shard.column(column)]


def _table(own: Sequence[object], names: Sequence[object]) -> Numbers:
    return np.array([names.index(name) for name in own], np.int64)
