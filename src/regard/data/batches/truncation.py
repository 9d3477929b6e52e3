"""Truncate labeled texts, or pairs of texts, that are too long for a row."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.arrays import IntArray, StoredSamples, row_and_offset


def text_budget(max_length: int, n_texts: int) -> int:
    """Return how many text tokens fit in a row in addition to [cls] and one [sep] per text."""
    return max(1, max_length - 1 - n_texts)


def truncated_lengths(lengths: NDArray[np.integer], max_tokens: int) -> IntArray:
    """Return how many tokens of each text (texts, n) remain if a sample may have `max_tokens` in all.

    The longer text of a pair is truncated first; if both are long, each gets half:

    >>> truncated_lengths(np.array([[9, 9, 2, 3], [1, 9, 9, 3]]), max_tokens=7)
    array([[6, 4, 2, 3],
           [1, 3, 5, 3]])
    """
    lengths = lengths.astype(np.int64)
    if len(lengths) == 1:
        return np.minimum(lengths, max_tokens)
    first_lengths, second_lengths = lengths
    first_lengths = np.minimum(first_lengths, np.maximum(max_tokens - second_lengths, max_tokens - max_tokens // 2))
    return np.stack((first_lengths, np.minimum(second_lengths, max_tokens - first_lengths)))


def truncate(records: StoredSamples, max_tokens: int) -> StoredSamples:
    """Return the samples with every text truncated to its share of `max_tokens`."""
    lengths = truncated_lengths(records.lengths, max_tokens)
    if (lengths == records.lengths).all():
        return records
    text_index, offsets = row_and_offset(records.lengths.T.ravel())  # the texts of a sample are stored side by side
    return replace(records, tokens=records.tokens[offsets < lengths.T.ravel()[text_index]], lengths=lengths)
