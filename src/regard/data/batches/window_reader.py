"""Read the stored tokens of a batch from a window of shards."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import DamagedError
from regard.data.batches.arrays import IntArray, StoredSamples
from regard.data.batches.order import BatchSamples
from regard.data.shards.shard import Shard, Shards


class WindowReader:
    """Reads samples of a few shards. It holds their lengths and labels in memory; tokens stay memory-mapped."""

    def __init__(self, shards: Shards, shard_numbers: Sequence[int], streams: int) -> None:
        window = [shards.shards[number] for number in shard_numbers]
        self.shard_numbers = tuple(shard_numbers)
        self._sample_offsets = shards.sample_offsets
        self._tokens: list[memoryview] = [memoryview(b"")] * len(shards.shards)
        self._dtype: np.dtype[Any] = shards.shards[0].dtype
        # A sample's number + the shift of its shard is its index in the arrays below.
        self._shift = np.zeros(len(shards.shards), np.int64)
        offset = 0
        for number, shard in zip(shard_numbers, window, strict=True):
            self._tokens[number] = shards.load_tokens(number).data
            self._shift[number] = offset - shards.sample_offsets[number]
            offset += len(shard)
        self._offsets = np.concatenate([shard.offsets()[:-1] for shard in window])
        self._lengths = np.concatenate([shard.lengths[:streams] for shard in window], axis=1)
        self._languages = np.concatenate([_renumber_column(shard, "languages", shards.languages) for shard in window])
        self._labels = (
            np.concatenate([_renumber_column(shard, "label", (None, *shards.labels)) for shard in window]) - 1
        )
        self._has_tags = shards.streams[:streams][-1] == "tags"
        self._tag_numbers = {
            number: _make_renumbering((None, *shard.labels), (None, *shards.labels))
            for number, shard in zip(shard_numbers, window, strict=True)
        }
        self._largest = max(max(shard.largest) for shard in window)
        self._names = ", ".join(shard.name for shard in window)

    def read(self, batch_samples: BatchSamples) -> StoredSamples:
        """Read the stored tokens of a batch."""
        shards = np.searchsorted(self._sample_offsets, batch_samples.samples, side="right") - 1
        local = batch_samples.samples + self._shift[shards]
        starts, lengths = self._offsets[local], self._lengths.take(local, axis=1).astype(np.int64)
        document_lengths = None
        if batch_samples.starts is not None and batch_samples.lengths is not None:
            # A segment also needs the token before it, as the input of its first position.
            document_lengths = lengths[0]
            ends = starts + np.minimum(batch_samples.starts + batch_samples.lengths, document_lengths)
            starts = starts + np.maximum(batch_samples.starts - 1, 0)
            lengths = batch_samples.lengths[None]
        else:
            ends = starts + lengths.sum(axis=0)
        return StoredSamples(
            tokens=self._gather(shards, starts, ends),
            lengths=lengths,
            samples=batch_samples.samples,
            draws=batch_samples.draws,
            languages=self._languages[local],
            labels=self._labels[local],
            starts=batch_samples.starts,
            document_lengths=document_lengths,
            rows=batch_samples.rows,
        )

    def _gather(self, shards: IntArray, starts: IntArray, ends: IntArray) -> NDArray[np.integer]:
        tokens = self._tokens
        spans = zip(shards.tolist(), starts.tolist(), ends.tolist(), strict=True)
        # Joining memory views is twice as fast as NumPy's concatenate.
        content = b"".join([tokens[shard][start:end] for shard, start, end in spans])
        stored = np.frombuffer(content, self._dtype)
        if stored.size and stored.max() > self._largest:
            hint = "Run `regard prepare` again: it finds and rewrites damaged shards."
            raise DamagedError(f"The tokens of a shard have changed: one of {self._names}.", hint=hint)
        return self._renumber_tags(stored, shards, ends - starts) if self._has_tags else stored

    def _renumber_tags(self, tokens: NDArray[np.integer], shards: IntArray, sizes: IntArray) -> NDArray[np.integer]:
        """Replace the shard's tag numbers, the second half of each sample, by those of the corpus."""
        tokens = tokens.astype(np.int64)
        end = 0
        for shard, size in zip(shards.tolist(), sizes.tolist(), strict=True):
            start, end = end + size // 2, end + size
            tokens[start:end] = self._tag_numbers[shard][tokens[start:end]]
        return tokens


def _renumber_column(shard: Shard, column: str, corpus_names: Sequence[object]) -> IntArray:
    """Return a column of a shard, converted from the shard's numbering of names to that of the corpus."""
    shard_names: Sequence[object] = shard.languages if column == "languages" else (None, *shard.labels)
    return _make_renumbering(shard_names, corpus_names)[shard.column(column)]


def _make_renumbering(shard_names: Sequence[object], corpus_names: Sequence[object]) -> IntArray:
    return np.array([corpus_names.index(name) for name in shard_names], np.int64)
