"""What goes into a task and what comes out of it, as plain arrays, and the two ways of laying tokens into rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.cutting import BatchShapes

IGNORE_INDEX = -100  # the label of a place where nothing must come out; torch's own choice
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class StoredSamples:
    """The samples of a batch as they are stored: streams of a sample side by side, sample after sample."""

    tokens: NDArray[np.integer]  # all of them, flat
    lengths: IntArray  # (streams, samples)
    samples: IntArray
    draws: IntArray  # how often each was drawn before: at weight 1, the epoch
    languages: IntArray  # of each sample, as a number in the corpus' table
    labels: IntArray  # of each sample; -1 is none
    starts: IntArray | None = None  # packed: where in its document a piece begins,
    document_lengths: IntArray | None = None  # how long the document is,
    rows: IntArray | None = None  # and in which row the piece stands
    shapes: BatchShapes | None = None  # those that batches may have; None is any

    def padded_width(self, length: int) -> int:
        """The tokens to which a side is padded whose longest row has so many."""
        return length if self.shapes is None else self.shapes.padded_width(self.samples.size, length)


@dataclass(frozen=True)
class BatchArrays:
    """What a model reads and what must come out, in the words of the model's arguments."""

    labels: IntArray  # (B, T) or (B,)
    source: IntArray | None = None  # (B, S) what an encoder reads,
    source_valid: BoolArray | None = None  # and where it is not padding
    target: IntArray | None = None  # (B, T) what a decoder reads
    documents: IntArray | None = None  # (B, T) packed: which sample of the batch; -1 is padding
    positions: IntArray | None = None  # (B, T) packed: they restart with every document


def range_mask(low: int, high: IntArray, width: int) -> BoolArray:
    """(rows, width): True from column `low` up to, not including, column `high` of each row."""
    columns = np.arange(-low, width - low, dtype=np.int32).view(np.uint32)  # before `low`: huge numbers
    return columns < (high - low)[:, None].astype(np.uint32)


def scatter(tokens: NDArray[np.integer], mask: BoolArray, fill: int) -> IntArray:
    """Tokens row by row into the places that are True.

    >>> scatter(np.array([5, 6, 7]), range_mask(0, np.array([2, 1]), 3), fill=0)
    array([[5, 6, 0],
           [7, 0, 0]])
    """
    grid = np.full(mask.shape, fill, np.int64)
    grid[mask] = tokens
    return grid


def row_and_offset(lengths: IntArray) -> tuple[IntArray, IntArray]:
    """For every token of rows laid end to end: its row, and its place in it.

    >>> row_and_offset(np.array([2, 0, 1]))
    (array([0, 0, 2]), array([0, 1, 0]))
    """
    rows = np.repeat(np.arange(lengths.size), lengths)
    return rows, np.arange(rows.size) - (np.cumsum(lengths) - lengths)[rows]
