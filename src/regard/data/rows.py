"""What goes into a task and what comes out of it, as plain arrays, and the two ways of laying tokens into rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.cuts import Shapes

IGNORED = -100  # the label of a place where nothing must come out; torch's own choice
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Records:
    """The samples of a batch as they are stored: streams of a sample side by side, sample after sample."""

    tokens: NDArray[np.integer]  # all of them, flat
    lengths: Numbers  # (streams, samples)
    samples: Numbers
    draws: Numbers  # how often each was drawn before: at weight 1, the epoch
    languages: Numbers  # of each sample, as a number in the corpus' table
    labels: Numbers  # of each sample; -1 is none
    begins: Numbers | None = None  # packed: where in its document a piece begins,
    wholes: Numbers | None = None  # how long the document is,
    rows: Numbers | None = None  # and in which row the piece stands
    shapes: Shapes | None = None  # those that batches may have; None is any

    def width(self, longer: int) -> int:
        """The tokens to which a side is padded whose longest row has so many."""
        return longer if self.shapes is None else self.shapes.width(self.samples.size, longer)


@dataclass(frozen=True)
class Rows:
    """What a model reads and what must come out, in the words of the model's arguments."""

    labels: Numbers  # (B, T) or (B,)
    source: Numbers | None = None  # (B, S) what an encoder reads,
    source_real: Flags | None = None  # and where it is not padding
    target: Numbers | None = None  # (B, T) what a decoder reads
    documents: Numbers | None = None  # (B, T) packed: which sample of the batch; -1 is padding
    positions: Numbers | None = None  # (B, T) packed: they restart with every document


def between(low: int, high: Numbers, width: int) -> Flags:
    """(rows, width): True from column `low` up to, not including, column `high` of each row."""
    columns = np.arange(-low, width - low, dtype=np.int32).view(np.uint32)  # before `low`: huge numbers
    return columns < (high - low)[:, None].astype(np.uint32)


def laid(tokens: NDArray[np.integer], places: Flags, empty: int) -> Numbers:
    """Tokens row by row into the places that are True.

    >>> laid(np.array([5, 6, 7]), between(0, np.array([2, 1]), 3), empty=0)
    array([[5, 6, 0],
           [7, 0, 0]])
    """
    cells = np.full(places.shape, empty, np.int64)
    cells[places] = tokens
    return cells


def within(lengths: Numbers) -> tuple[Numbers, Numbers]:
    """For every token of rows laid end to end: its row, and its place in it.

    >>> within(np.array([2, 0, 1]))
    (array([0, 0, 2]), array([0, 1, 0]))
    """
    rows = np.repeat(np.arange(lengths.size), lengths)
    return rows, np.arange(rows.size) - (np.cumsum(lengths) - lengths)[rows]
