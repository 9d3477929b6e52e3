"""The interface between the loader and a task: how stored samples become rows of inputs and labels.

Samples are stored without special tokens; a task adds those that it needs, so the same shards serve every task.
`row_lengths` gives the lengths of the resulting rows, from which batches are cut. Noise is a function of
(seed, draw, sample, position): a sample gets the same mask on any number of ranks and in any batch, and a different one
every time it is drawn.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.arrays import BatchArrays, StoredSamples


class RowMaker(Protocol):
    """The interface that the loader uses."""

    @property
    def packs_sequences(self) -> bool:
        """Whether documents are laid end to end and cut into full rows."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The streams that the task reads; they must be the first ones stored."""

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Convert lengths of stored streams (streams, n) to lengths of rows (sides, n).

        Longer streams must not give shorter rows.
        """

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make the inputs and labels of a batch."""


@runtime_checkable
class TruncatingRows(RowMaker, Protocol):
    """Rows that truncate samples instead of skipping them."""

    max_length: int | None

    def untruncated_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the lengths of the rows without truncation."""
