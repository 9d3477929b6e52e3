"""word2vec rows (Mikolov et al. 2013): CBOW and skip-gram."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.keyed_random import derive, integers
from regard.base.labels import IGNORE_INDEX
from regard.config.run import RunConfig
from regard.data.batches.arrays import (
    BatchArrays,
    StoredSamples,
    derive_sample_keys,
    range_mask,
    row_and_offset,
    scatter,
)
from regard.data.batches.batch import Batch
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards
from regard.tasks.embedding import Embedder
from regard.tasks.task import (
    AnyAugmentation,
    Task,
    make_synthetic_batch,
    max_text_length,
    random_tokens,
    require_tokenizers,
)
from regard.text.specials import SpecialIds
from regard.text.tokenizer_pair import TokenizerPair

NEIGHBOR = 5  # random key, different for every task


@dataclass(frozen=True)
class CbowRows:
    """Continuous bag of words: every token is the label of its own position; the model sees only its neighbors.

    Texts have no special tokens, which would be neighbors of the first and last token.
    """

    specials: SpecialIds
    packs_sequences = False
    needs = ("source",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the lengths of the texts, at least 1."""
        return np.maximum(lengths[:1], 1)

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Create a batch of texts. A text of one token has no label, because it has no neighbors."""
        lengths = records.lengths[0]
        mask = range_mask(0, lengths, records.padded_width(max(int(lengths.max()), 1)))
        labels = scatter(records.tokens, mask, IGNORE_INDEX)
        labels[lengths == 1] = IGNORE_INDEX
        return BatchArrays(labels, source=scatter(records.tokens, mask, self.specials.pad), source_valid=mask)


@dataclass(frozen=True)
class SkipGramRows(CbowRows):
    """Skip-gram: the label of a token is one of its neighbors, at most `window` tokens away.

    The neighbor is resampled in every epoch, so all neighbors count equally on average. A position whose sampled
    neighbor is outside the text has no label.
    """

    seed: int
    window: int

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Create a batch of texts with a neighbor of each token."""
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


class CbowTask(Task):
    """Learn word vectors by predicting a token from its neighbors (CBOW)."""

    pipeline_class = Embedder

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Split long texts; there are no special tokens."""
        del augmentation
        return shards.split_long(max_text_length(run)), CbowRows(require_tokenizers(tokenizers).source.specials)

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random tokens."""
        tokens = random_tokens(run, rows, length)
        return make_synthetic_batch(tokens, source=tokens)


class SkipGramTask(CbowTask):
    """Learn word vectors by predicting a neighbor from a token (skip-gram)."""

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Split long texts; every token has a random neighbor as its label."""
        del augmentation
        specials, window = require_tokenizers(tokenizers).source.specials, run.model.head.window  # type: ignore[union-attr]
        return shards.split_long(max_text_length(run)), SkipGramRows(specials, run.data.seed, window)
