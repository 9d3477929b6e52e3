"""Remove samples from a run without moving any other sample.

A removed sample keeps its number, its place in the order and its lengths, so all other samples stay in the same
batches. Its tokens become zeros before the task reads them, and its labels are ignored: nothing of its content reaches
the model, and its gradient is zero. Batches before its first use are unchanged.

In packed text a removed document is a segment without labels; other documents never attend to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from regard.base.errors import RegardError
from regard.base.labels import IGNORE_INDEX
from regard.data.batches.arrays import BatchArrays, BoolArray, IntArray, StoredSamples
from regard.data.shards.shard import Shards


class Tombstones:
    """The removed samples of a corpus.

    Args:
        shards: The corpus, as the task reads it; a long text may be several samples.
        removed: The lines of each file whose samples are removed.

    Raises:
        RegardError: If a line has no sample in the corpus, for example because it was held out for validation.
    """

    def __init__(self, shards: Shards, removed: Mapping[str, Sequence[int]]) -> None:
        numbers = []
        missing = {file: set(lines) for file, lines in removed.items()}
        for shard, first in zip(shards.shards, shards.sample_offsets.tolist(), strict=False):
            files, lines = shard.column("file"), shard.column("line")
            for index, file in enumerate(shard.files):
                if file in removed:
                    is_removed = (files == index) & np.isin(lines, np.array(removed[file], np.int64))
                    numbers.append(first + np.flatnonzero(is_removed))
                    missing[file] -= set(lines[is_removed].tolist())
        if unknown := [f"{file}:{line}" for file, lines in missing.items() for line in sorted(lines)]:
            raise RegardError(
                f"The training corpus has no sample of these lines: {', '.join(unknown[:5])}.",
                location="data.removed",
                hint="They may be held out for validation, skipped as defects, or not in the corpus.",
            )
        self.samples = np.unique(np.concatenate(numbers)) if numbers else np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self.samples.size

    def find(self, records: StoredSamples) -> BoolArray:
        """Return which samples of a batch are removed, (samples)."""
        return np.isin(records.samples, self.samples)

    def blank(self, records: StoredSamples) -> StoredSamples:
        """Return the batch with zeros in the place of removed tokens, pixels and spectrogram values."""
        removed = self.find(records)
        if not removed.any():
            return records
        tokens = records.tokens.copy()
        tokens[np.repeat(removed, _stored_sizes(records))] = 0
        return replace(records, tokens=tokens)

    def ignore_labels(self, records: StoredSamples, arrays: BatchArrays) -> BatchArrays:
        """Return the arrays of a batch without the labels of removed samples."""
        removed = self.find(records)
        if not removed.any():
            return arrays
        # (B, T) of packed text, otherwise (B,): the row of a sample is its index
        is_ignored = removed if arrays.documents is None else removed[arrays.documents] & (arrays.documents >= 0)
        labels = arrays.labels.copy()
        labels[is_ignored] = IGNORE_INDEX
        return replace(arrays, labels=labels)


def _stored_sizes(records: StoredSamples) -> IntArray:
    """Return how many stored values each sample has in `records.tokens`, (samples)."""
    if records.starts is None or records.document_lengths is None:
        return records.lengths.sum(axis=0)
    # A segment of a document also has the token before it, if there is one.
    starts = np.maximum(records.starts - 1, 0)
    return np.minimum(records.starts + records.lengths[0], records.document_lengths) - starts
