"""The task of answering prompts: a language model learns the responses, not the prompts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.arrays import IGNORE_INDEX, BatchArrays, StoredSamples, range_mask, scatter
from regard.text.specials import SpecialIds


@dataclass(frozen=True)
class PromptResponse:
    """Supervised fine-tuning of a language model: [bos] + prompt + response -> response + [eos].

    One pair is one row; the tokens of the prompt have no label. Some imported models read no bos.
    """

    specials: SpecialIds
    starts_with_bos: bool = True
    packs_sequences = False
    needs = ("source", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the number of inputs: bos and both texts."""
        return lengths[:2].sum(axis=0, keepdims=True) + int(self.starts_with_bos)

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of pairs, each prompt before its response."""
        first = int(self.starts_with_bos)  # column of the first token of the prompt
        lengths = records.lengths[:2].sum(axis=0) + first
        width = records.padded_width(max(1, int(lengths.max())))
        rows = scatter(records.tokens, range_mask(first, lengths, width + 1), IGNORE_INDEX)
        rows[:, :first] = self.specials.bos
        target = np.where(range_mask(0, lengths, width), rows[:, :-1], self.specials.pad)
        rows[np.arange(lengths.size), lengths] = self.specials.eos
        labels = rows[:, 1:]
        labels[range_mask(0, np.maximum(records.lengths[0] + first - 1, 0), width)] = IGNORE_INDEX
        return BatchArrays(labels, target=target)
