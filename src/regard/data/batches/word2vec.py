"""The two tasks of word2vec (Mikolov et al. 2013): a token from its neighbors, and a neighbor from a token."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.arrays import (
    IGNORE_INDEX,
    BatchArrays,
    StoredSamples,
    derive_sample_keys,
    range_mask,
    row_and_offset,
    scatter,
)
from regard.data.batches.keyed_random import derive, integers
from regard.data.batches.tasks import NEIGHBOR
from regard.text.specials import SpecialIds


@dataclass(frozen=True)
class Cbow:
    """Continuous bag of words: every token is the label of its own position; the model sees its neighbors only.

    A text has no special tokens around it: they would be neighbors of its ends.
    """

    specials: SpecialIds
    packs_sequences = False
    needs = ("source",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the lengths of the texts, at least 1."""
        return np.maximum(lengths[:1], 1)

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of texts. A text of one token has no label: it has no neighbors."""
        lengths = records.lengths[0]
        mask = range_mask(0, lengths, records.padded_width(max(int(lengths.max()), 1)))
        labels = scatter(records.tokens, mask, IGNORE_INDEX)
        labels[lengths == 1] = IGNORE_INDEX
        return BatchArrays(labels, source=scatter(records.tokens, mask, self.specials.pad), source_valid=mask)


@dataclass(frozen=True)
class SkipGram(Cbow):
    """Skip-gram: the label of a token is one of its neighbors, at most `window` tokens away.

    The neighbor is sampled again in every epoch, so that in the mean all of them count alike. A position whose sampled
    neighbor lies outside the text has no label.
    """

    seed: int
    window: int

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of texts with a neighbor of each token."""
        arrays = super().make_arrays(records)
        lengths = records.lengths[0]
        rows, columns = row_and_offset(lengths)
        keys = derive(derive_sample_keys(self.seed, records, NEIGHBOR)[rows], columns)
        offsets = integers(keys, 2 * self.window) - self.window
        offsets += offsets >= 0  # -window to -1 and 1 to window
        neighbors = columns + offsets
        is_inside = (neighbors >= 0) & (neighbors < lengths[rows])
        starts = np.cumsum(lengths) - lengths
        tokens = records.tokens.astype(np.int64)[np.where(is_inside, starts[rows] + neighbors, 0)]
        arrays.labels[rows, columns] = np.where(is_inside, tokens, IGNORE_INDEX)
        return arrays
