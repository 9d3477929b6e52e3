"""Base class of text encoder rows: [cls] + text + [sep]."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.labels import IGNORE_INDEX
from regard.data.batches.arrays import BatchArrays, IntArray, StoredSamples, range_mask, scatter
from regard.text.specials import SpecialIds


@dataclass(frozen=True)
class EncoderRows:
    """Base of the encoder-only tasks: [cls] + text + [sep]."""

    specials: SpecialIds
    packs_sequences = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The text only."""
        return ("source",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Add two special tokens."""
        return lengths[:1] + 2

    def add_special_tokens(self, tokens: NDArray[np.integer], lengths: IntArray, records: StoredSamples) -> BatchArrays:
        """Add [cls] and [sep] to the texts; all labels are IGNORE_INDEX."""
        width = records.padded_width(int(lengths.max()) + 2)
        source = scatter(tokens, range_mask(1, lengths + 1, width), self.specials.pad)
        source[:, 0] = self.specials.cls
        source[np.arange(lengths.size), lengths + 1] = self.specials.sep
        return BatchArrays(
            np.full(source.shape, IGNORE_INDEX), source=source, source_valid=range_mask(0, lengths + 2, width)
        )
