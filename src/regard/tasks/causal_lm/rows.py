"""Rows of causal language modeling: packed documents, or prompts with their responses."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.labels import IGNORE_INDEX
from regard.data.batches.arrays import BatchArrays, StoredSamples, range_mask, row_and_offset, scatter
from regard.text.specials import SpecialIds


@dataclass(frozen=True)
class CausalLMRows:
    """Causal language modeling: [bos] + text -> text + [eos], packed.

    Documents are packed into rows, and each document attends only to itself. Every token of every document is a label
    exactly once per epoch, wherever rows are cut. Without bos, the first token of a document is not a label. The
    documents "a b" and "c d e f" in rows of five positions, cut into three segments:

                   row 0                               row 1
                   segment 0         segment 1         segment 2
        tokens     [bos] a   b [eos] [bos] c   d       d   e   f [eos]
        target     [bos] a   b       [bos] c           d   e   f       pad pad    all but a segment's last token
        labels     a     b   [eos]   c     d           e   f   [eos]   -   -      all but its first token
        documents  0     0   0       1     1           2   2   2       -1  -1     the number of the segment
        positions  0     1   2       0     1           0   1   2       0   0
    """

    specials: SpecialIds
    starts_with_bos: bool = True
    packs_sequences = True
    needs = ("source",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Add one for bos (input) or eos (label)."""
        return lengths[:1] + 1

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of full rows."""
        assert records.starts is not None  # noqa: S101 - the loader packs
        assert records.document_lengths is not None  # noqa: S101
        assert records.rows is not None  # noqa: S101
        sizes = records.lengths[0]  # positions of each segment, which has one token more
        ends = np.cumsum(sizes + 1)
        firsts, lasts = ends - sizes - 1, ends - 1
        bos_indices = firsts[records.starts == 0]
        eos_indices = lasts[records.starts + sizes == records.document_lengths + 1]
        tokens = np.empty(int(ends[-1]), np.int64)
        is_stored, is_input, is_label = np.ones((3, tokens.size), np.bool_)
        is_stored[bos_indices] = is_stored[eos_indices] = is_input[lasts] = is_label[firsts] = False
        tokens[is_stored] = records.tokens
        tokens[bos_indices], tokens[eos_indices] = self.specials.bos, self.specials.eos
        if not self.starts_with_bos:
            is_input[bos_indices] = is_label[bos_indices + 1] = False
            sizes = sizes - (records.starts == 0)
        row_sizes = np.bincount(records.rows, sizes).astype(np.int64)
        mask = range_mask(0, row_sizes, max(1, int(row_sizes.max())))
        documents, positions = row_and_offset(sizes)
        return BatchArrays(
            scatter(tokens[is_label], mask, IGNORE_INDEX),
            target=scatter(tokens[is_input], mask, self.specials.pad),
            documents=scatter(documents, mask, -1),
            positions=scatter(positions, mask, 0),
        )


@dataclass(frozen=True)
class PromptResponseRows:
    """Supervised fine-tuning of a language model: [bos] + prompt + response -> response + [eos].

    Each pair is one row; prompt tokens have no label. Some imported models do not use bos.
    """

    specials: SpecialIds
    starts_with_bos: bool = True
    packs_sequences = False
    needs = ("source", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the number of input tokens: bos and both texts."""
        return lengths[:2].sum(axis=0, keepdims=True) + int(self.starts_with_bos)

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Create a batch of prompts followed by their responses."""
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
