"""Cut batches from lengths: sentences of similar length together, or running text packed into full rows.

Both work on arrays of lengths only. A batch of sentences is padded to its longest sentence, or a little further, so it
costs rows times the longer side; that never exceeds the token budget.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.integer]  # (sides, samples)
Indices = NDArray[np.int64]

# `sort_by_length` packs two lengths and the index of a sample into one 64-bit integer.
MAX_LENGTH = 1 << 21
MAX_POOL_SIZE = 1 << 19


def sort_by_length(lengths: Lengths) -> Indices:
    """Return an order in which neighbors have similar lengths on both sides.

    Samples are sorted by the longer side, then by the shorter one, alternately ascending and descending, so that the
    shorter side does not jump where the longer one changes. On 29,000 caption pairs this halves the padding of a sort
    by the longer side alone (6.9 % to 3.2 %).
    """
    lengths = lengths.astype(np.int64)
    longer_side, difference = lengths.max(axis=0), lengths[-1] - lengths[0]
    difference = np.where(longer_side % 2 == 0, difference, -difference) + MAX_LENGTH
    # One distinct integer per sample: no ties, and faster to sort than a tuple.
    keys = (longer_side * (2 * MAX_LENGTH) + difference) * MAX_POOL_SIZE + np.arange(longer_side.size)
    return np.sort(keys) % MAX_POOL_SIZE


@dataclass(frozen=True)
class BatchShapes:
    """The allowed batch shapes: only a few, although sentences have many different lengths.

    A library that compiles a kernel for every shape (oneDNN in bfloat16) spends several times longer on compiling a
    kernel than on running it. So rows x width, the size that matrix products depend on, is a multiple of a power of
    two, of 32 for 4,096 tokens:

        rows, a multiple of     1   2   4   8  16  32
        width, a multiple of   32  16   8   4   2   1

    Sides are padded by an eighth at most, so short ones miss their multiple. This costs 1 % of padding and 6 % of the
    token budget, and 131,072 pairs have 45 sizes instead of 417.

    CPU fast path; reference: `few_shapes=False`; tested by: tests/data/batches/test_cutting.py.
    """

    max_tokens: int
    max_length: int  # no side is padded beyond it
    few_shapes: bool = True  # False allows any shape within the budget

    @cached_property
    def width_multiples(self) -> dict[int, int]:
        """The table: the multiple of the width for each multiple of the rows.

        >>> BatchShapes(max_tokens=4096, max_length=512).width_multiples
        {1: 32, 2: 16, 4: 8, 8: 4, 16: 2, 32: 1}
        """
        size_multiple = floor_power_of_two(self.max_tokens // 128) if self.few_shapes else 1
        return {1 << power: size_multiple >> power for power in range(size_multiple.bit_length())}

    def max_rows(self, length: int) -> int:
        """Return the maximum number of rows for a batch whose longest sample has `length` tokens.

        >>> BatchShapes(max_tokens=4096, max_length=512).max_rows(41), 4096 // 41  # 96 x 41 is a multiple of 32
        (96, 99)
        """
        min_multiple = self.row_multiple(self.max_tokens // length)
        return max(
            self.max_tokens // self.padded_width(multiple, length) // multiple * multiple
            for multiple in self.width_multiples
            if multiple >= min_multiple
        )

    def row_multiple(self, n_rows: int) -> int:
        """Return a multiple to which `n_rows` can be rounded down at a loss of an eighth at most."""
        return min(max(self.width_multiples), floor_power_of_two(n_rows // 8))

    def padded_width(self, n_rows: int, length: int) -> int:
        """Return the width to which a side with `n_rows` rows is padded.

        >>> shapes = BatchShapes(max_tokens=4096, max_length=512)
        >>> [shapes.padded_width(rows, 41) for rows in (96, 8, 1)]  # 1 row: 41 tokens are too few for a multiple of 32
        [41, 44, 44]
        """
        row_multiple = n_rows & -n_rows  # the largest power of two that divides it
        width_multiple = min(self.width_multiples.get(row_multiple, 1), floor_power_of_two(length // 8))
        padded_length = min(self.max_length, length + -length % width_multiple)
        # Subword noise can make rows longer than planned: then even the unpadded batch exceeds the budget.
        is_within_budget = n_rows * padded_length <= self.max_tokens or n_rows * length > self.max_tokens
        return padded_length if is_within_budget and padded_length >= length else length


def floor_power_of_two(limit: int) -> int:
    """Return the largest power of two up to a number, at least 1.

    >>> [floor_power_of_two(limit) for limit in (0, 1, 5, 64)]
    [1, 1, 4, 64]
    """
    return 1 << max(0, limit.bit_length() - 1)


def cut_by_tokens(lengths: Lengths, shapes: BatchShapes) -> list[int]:
    """Return where batches begin in ascending lengths; each gets as many rows as its shape allows.

    >>> cut_by_tokens(np.array([2, 2, 3, 5, 5]), BatchShapes(max_tokens=10, max_length=10))
    [0, 3]
    """
    length_list = lengths.tolist()
    max_rows = {size: shapes.max_rows(size) for size in sorted(set(length_list))}
    starts, start = [], 0
    while start < len(length_list):
        starts.append(start)
        n_rows = min(len(length_list) - start, max_rows[length_list[start]])
        while n_rows > (n_allowed := max_rows[last_length := length_list[start + n_rows - 1]]):
            n_shorter = bisect_left(length_list, last_length, start) - start
            n_rows = max(n_allowed, n_shorter - n_shorter % shapes.row_multiple(n_shorter))
        start += n_rows
    return starts


@dataclass(frozen=True)
class Segments:
    """Segments of documents, row after row."""

    documents: Indices  # index of the document
    starts: Indices  # offset in the document
    lengths: Indices
    row_offsets: Indices  # where each row's segments begin, and the end


def pack_documents(lengths: NDArray[np.integer], row_length: int) -> Segments:
    """Lay documents end to end and cut every `row_length` tokens; only the last row may be short.

    >>> packed = pack_documents(np.array([3, 6]), row_length=4)
    >>> packed.documents, packed.starts, packed.lengths, packed.row_offsets
    (array([0, 1, 1, 1]), array([0, 0, 1, 5]), array([3, 1, 4, 1]), array([0, 2, 3, 4]))
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if ends.size else 0
    edges = np.union1d(ends, np.arange(0, total + 1, row_length))
    edges = np.append(edges, total) if edges[-1] < total else edges
    starts = edges[:-1]
    documents = np.searchsorted(ends, starts, side="right")
    row_offsets = np.searchsorted(starts, np.arange(0, total, row_length))
    return Segments(
        documents=documents,
        starts=starts - (ends - lengths)[documents],
        lengths=np.diff(edges),
        row_offsets=np.append(row_offsets, starts.size),
    )
