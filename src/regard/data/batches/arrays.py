"""NumPy arrays that a task reads (`StoredSamples`) and returns (`BatchArrays`), and helpers to build rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.keyed_random import Bits, derive, make_key
from regard.base.labels import IGNORE_INDEX
from regard.data.batches.cutting import BatchShapes
from regard.text.specials import SpecialIds

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class StoredSamples:
    """The samples of a batch as they are stored: sample after sample, and within a sample stream after stream."""

    tokens: NDArray[np.integer]  # of all samples, flat
    lengths: IntArray  # (streams, samples)
    samples: IntArray  # sample numbers
    draws: IntArray  # how often each sample was drawn before: at weight 1, the epoch
    languages: IntArray  # of each sample, an index into the corpus' `languages`
    labels: IntArray  # of each sample; -1 means none
    starts: IntArray | None = None  # packed: offset of each segment in its document
    document_lengths: IntArray | None = None  # packed: tokens of each segment's whole document
    rows: IntArray | None = None  # packed: the row of each segment
    shapes: BatchShapes | None = None  # allowed shapes of a batch; None allows any

    def padded_width(self, length: int) -> int:
        """Return the padded width of a side whose longest row has `length` tokens."""
        return length if self.shapes is None else self.shapes.padded_width(self.samples.size, length)


@dataclass(frozen=True)
class BatchArrays:
    """The inputs and labels of a batch, named like the arguments of the models."""

    labels: IntArray  # (B, T) or (B,)
    source: IntArray | None = None  # (B, S) encoder input
    images: FloatArray | None = None  # (B, channels, height, width) encoder input in the place of `source`
    audio: FloatArray | None = None  # (B, frames, bins) encoder input in the place of `source`
    source_valid: BoolArray | None = None  # (B, S) False for padding
    types: IntArray | None = None  # (B, S) token types: 1 in the second text of a pair
    target: IntArray | None = None  # (B, T) decoder input
    target_valid: BoolArray | None = None  # (B, T) for a second encoder input; False for padding
    documents: IntArray | None = None  # (B, T) packed: index of the sample within the batch; -1 for padding
    positions: IntArray | None = None  # (B, T) packed: from 0 in every document


def derive_sample_keys(seed: int, records: StoredSamples, purpose: int) -> Bits:
    """Derive a random key for each sample, draw and purpose."""
    return derive(derive(make_key(seed, purpose), records.draws), records.samples)


def range_mask(low: int, high: IntArray, width: int) -> BoolArray:
    """Return a mask (rows, width): True from column `low` up to, not including, column `high` of each row."""
    columns = np.arange(-low, width - low, dtype=np.int32).view(np.uint32)  # before `low`: wraps to huge numbers
    return columns < (high - low)[:, None].astype(np.uint32)


def scatter(tokens: NDArray[np.integer], mask: BoolArray, fill: int) -> IntArray:
    """Put tokens row by row into the positions that are True; fill the rest.

    >>> scatter(np.array([5, 6, 7]), range_mask(0, np.array([2, 1]), 3), fill=0)
    array([[5, 6, 0],
           [7, 0, 0]])
    """
    grid = np.full(mask.shape, fill, np.int64)
    grid[mask] = tokens
    return grid


def shift_target(
    records: StoredSamples, tokens: NDArray[np.integer], specials: SpecialIds, prompt: Sequence[int] = ()
) -> tuple[IntArray, IntArray]:
    """Return the labels, text + [eos], and the decoder's input, [bos] + text, of the texts of the second stream.

    With a prompt the decoder's input is [bos] + prompt + text; no label belongs to the prompt.
    """
    first = len(prompt)  # column of the first label
    lengths = records.lengths[1] + first
    width = records.padded_width(int(lengths.max()) + 1)
    labels = scatter(tokens, range_mask(first, lengths, width), IGNORE_INDEX)
    labels[np.arange(lengths.size), lengths] = specials.eos
    target = scatter(tokens, range_mask(first + 1, lengths + 1, width), specials.pad)
    target[:, : first + 1] = (specials.bos, *prompt)
    return labels, target


def row_and_offset(lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for every token of rows laid end to end, its row and its offset in the row.

    >>> row_and_offset(np.array([2, 0, 1]))
    (array([0, 0, 2]), array([0, 1, 0]))
    """
    rows = np.repeat(np.arange(lengths.size), lengths)
    return rows, np.arange(rows.size) - (np.cumsum(lengths) - lengths)[rows]
