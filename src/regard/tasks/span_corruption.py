"""Rows of span corruption (T5)."""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.keyed_random import Bits, derive
from regard.base.labels import IGNORE_INDEX
from regard.config.run import RunConfig
from regard.data.batches.arrays import (
    BatchArrays,
    IntArray,
    StoredSamples,
    derive_sample_keys,
    range_mask,
    row_and_offset,
    scatter,
)
from regard.data.batches.batch import Batch
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards
from regard.store.model_folder import StoredModel
from regard.tasks.task import (
    AnyAugmentation,
    Task,
    make_text_pair_batch,
    max_text_length,
    no_pipeline,
    require_tokenizers,
)
from regard.text.specials import SpecialIds
from regard.text.tokenizer_pair import TokenizerPair

SPAN_SPLITS, KEPT_SPLITS = 3, 4  # random keys, different for every task


@dataclass(frozen=True)
class SpanCorruptionRows:
    """Span corruption (T5): replace spans with sentinel tokens; predict the sentinels and the spans.

    "Thank you <x0> me to your party <x1>" -> "<x0> for inviting <x1> last week": `noise_density` of the tokens are
    removed, in spans of `mean_span_length` tokens on average. Sentinels are extra tokens of the vocabulary.
    """

    specials: SpecialIds
    sentinels: tuple[int, ...]
    seed: int
    noise_density: float = 0.15
    mean_span_length: float = 3.0
    packs_sequences = False
    needs = ("source",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the source lengths without spans and the target lengths of the spans, with sentinels and eos."""
        text_lengths = lengths[0].astype(np.int64)
        n_masked, n_spans = self.count_spans(text_lengths)
        return np.stack((text_lengths - n_masked + n_spans + 1, n_masked + n_spans + 1))

    def count_spans(self, lengths: IntArray) -> tuple[IntArray, IntArray]:
        """Return the number of removed tokens and spans, which depend only on the length."""
        n_masked = np.clip(np.rint(lengths * self.noise_density), 1, lengths - 1).clip(0).astype(np.int64)
        n_spans = np.clip(
            np.rint(n_masked / self.mean_span_length), 1, np.minimum(n_masked, lengths - n_masked)
        ).astype(np.int64)
        return n_masked, np.where(n_masked == 0, 0, n_spans)

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch with corrupted spans."""
        lengths = records.lengths[0]
        n_masked, n_spans = self.count_spans(lengths)
        if int(n_spans.max()) > len(self.sentinels):
            needed = f"A sample of {int(lengths.max())} tokens needs {int(n_spans.max())} sentinel tokens"
            raise RegardError(
                f"{needed}; the vocabulary has {len(self.sentinels)}.",
                hint='Train the tokenizer with more extra tokens (specials.extra = ["<x0>", "<x1>", ...]).',
            )
        kept_sizes = _random_partition(
            derive_sample_keys(self.seed, records, KEPT_SPLITS), lengths - n_masked, np.maximum(n_spans, 1)
        )
        span_sizes = _random_partition(derive_sample_keys(self.seed, records, SPAN_SPLITS), n_masked, n_spans)
        # Every row alternates: kept tokens, a removed span, kept tokens, a removed span...
        segment_rows, order = row_and_offset(np.maximum(n_spans, 1) + n_spans)
        sizes = np.empty(segment_rows.size, np.int64)
        sizes[order % 2 == 0], sizes[order % 2 == 1] = kept_sizes, span_sizes
        is_masked = np.repeat(order % 2 == 1, sizes)  # (tokens)
        sentinels = np.array((0, *self.sentinels))[order[order % 2 == 1] // 2 + 1]
        span_starts = (np.cumsum(sizes) - sizes)[order % 2 == 1]  # where spans begin
        tokens = records.tokens.astype(np.int64)
        with_sentinels = tokens.copy()
        with_sentinels[span_starts] = sentinels
        in_source = ~is_masked
        in_source[span_starts] = True
        # Position of each sentinel among the removed tokens.
        insert_at = span_starts - np.concatenate(([0], np.cumsum(in_source)))[span_starts] + np.arange(span_starts.size)
        return self._make_arrays(
            with_sentinels[in_source],
            np.insert(tokens[is_masked], insert_at, sentinels),
            lengths - n_masked + n_spans,
            n_masked + n_spans,
            records,
        )

    def _make_arrays(
        self,
        source_tokens: IntArray,
        target_tokens: IntArray,
        source_lengths: IntArray,
        target_lengths: IntArray,
        records: StoredSamples,
    ) -> BatchArrays:
        source_width, target_width = (
            records.padded_width(int(side.max()) + 1) for side in (source_lengths, target_lengths)
        )
        row_index = np.arange(source_lengths.size)
        source = scatter(source_tokens, range_mask(0, source_lengths, source_width), self.specials.pad)
        source[row_index, source_lengths] = self.specials.eos
        target = scatter(target_tokens, range_mask(1, target_lengths + 1, target_width), self.specials.pad)
        target[:, 0] = self.specials.bos
        labels = scatter(target_tokens, range_mask(0, target_lengths, target_width), IGNORE_INDEX)
        labels[row_index, target_lengths] = self.specials.eos
        return BatchArrays(
            labels, source=source, source_valid=range_mask(0, source_lengths + 1, source_width), target=target
        )


def _random_partition(keys: Bits, lengths: IntArray, counts: IntArray) -> IntArray:
    """Split each length randomly into `counts` non-empty parts; return the part sizes, row by row."""
    n_slots = np.maximum(lengths - 1, 0)  # positions where a cut may be
    rows, offsets = row_and_offset(n_slots)
    slot_order = np.lexsort((derive(keys[rows], offsets), rows))
    is_cut = np.zeros(rows.size, np.bool_)
    # Cut at the first counts - 1 slots of each row, in random order.
    is_cut[slot_order] = offsets < np.maximum(counts - 1, 0)[rows]
    has_parts = counts > 0
    starts = np.cumsum(lengths[has_parts]) - lengths[has_parts]  # every row and every cut starts a part
    row_starts = np.zeros(lengths.size, np.int64)
    row_starts[has_parts] = starts
    edges = np.sort(np.concatenate((starts, (row_starts[rows] + offsets + 1)[is_cut])))
    return np.diff(np.append(edges, lengths[has_parts].sum()))


class SpanCorruptionTask(Task):
    """Restore the spans that sentinels replace (T5)."""

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Split long texts and replace some spans of each part."""
        del augmentation
        if shards.streams == ("source",):
            shards = shards.split_long(max_text_length(run) - 2)  # 2 special tokens are added
        specials = require_tokenizers(tokenizers).source.specials
        return shards, SpanCorruptionRows(specials, tuple(specials.extra.values()), run.data.seed)

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random tokens on both sides."""
        return make_text_pair_batch(run, rows, length)

    def pipeline(self, stored: StoredModel) -> NoReturn:
        """Raise an error: there is no pipeline for this task."""
        raise no_pipeline(stored)
