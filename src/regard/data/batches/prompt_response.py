"""The task of answering prompts: a language model learns the responses, not the prompts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.arrays import IGNORE_INDEX, BatchArrays, StoredSamples, range_mask, scatter
from regard.text.specials import SpecialIds


@dataclass(frozen=True)
class PromptResponse:
    """Supervised fine-tuning of a language model: [bos] + prompt + response -> response + [eos].

    One pair is one row; the tokens of the prompt have no label.
    """

    specials: SpecialIds
    packed = False
    needs = ("source", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Add one to both texts together: bos is an input, eos is a label."""
        return lengths[:2].sum(axis=0, keepdims=True) + 1

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of pairs, each prompt before its response."""
        prompt_lengths, lengths = records.lengths[0], records.lengths[:2].sum(axis=0)
        width = records.padded_width(int(lengths.max()) + 1)
        target = scatter(records.tokens, range_mask(1, lengths + 1, width), self.specials.pad)
        target[:, 0] = self.specials.bos
        labels = scatter(records.tokens, range_mask(0, lengths, width), IGNORE_INDEX)
        labels[range_mask(0, prompt_lengths, width)] = IGNORE_INDEX
        labels[np.arange(lengths.size), lengths] = self.specials.eos
        return BatchArrays(labels, target=target)
