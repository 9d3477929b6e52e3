"""Translation rows for teacher forcing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.labels import IGNORE_INDEX
from regard.data.batches.arrays import BatchArrays, StoredSamples, range_mask, scatter
from regard.text.specials import SpecialIds


@dataclass(frozen=True)
class TranslationRows:
    """Translation by teacher forcing: source + [eos]; [bos] + target -> target + [eos].

    `language_tags` contains, for each entry of the corpus's `languages`, the token to prepend to the source: "<2de>"
    selects the target language of a multilingual model. Empty for models without tags.
    """

    source: SpecialIds
    target: SpecialIds
    language_tags: tuple[int, ...] = ()
    packs_sequences = False
    needs = ("source", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Add one token to both sides, and another to the source for the tag."""
        return lengths[:2] + np.array([[1 + bool(self.language_tags)], [1]], lengths.dtype)

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of pairs."""
        n_tags = int(bool(self.language_tags))
        source_lengths, target_lengths = records.lengths[0] + n_tags, records.lengths[1]  # without eos
        source_width, target_width = (
            records.padded_width(int(side.max()) + 1) for side in (source_lengths, target_lengths)
        )
        row_index = np.arange(source_lengths.size)
        # One table for both sides, because their tokens are stored in turn.
        mask = np.empty((row_index.size, source_width + target_width), np.bool_)
        mask[:, :source_width] = range_mask(n_tags, source_lengths, source_width)
        mask[:, source_width:] = range_mask(0, target_lengths, target_width)
        grid = scatter(records.tokens, mask, IGNORE_INDEX)
        labels = grid[:, source_width:]
        target = np.empty_like(labels)
        target[:, 0] = self.target.bos
        target[:, 1:] = np.where(mask[:, source_width:-1], labels[:, :-1], self.target.pad)
        labels[row_index, target_lengths] = self.target.eos
        valid = mask[:, :source_width]
        source = np.where(valid, grid[:, :source_width], self.source.pad)
        source[row_index, source_lengths] = self.source.eos
        valid[row_index, source_lengths] = True
        if self.language_tags:
            source[:, 0] = np.array(self.language_tags)[records.languages]
            valid[:, 0] = True
        return BatchArrays(labels, source=source, source_valid=valid, target=target)
