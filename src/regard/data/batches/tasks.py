"""Training tasks: turn stored samples into model inputs and labels.

Samples are stored without special tokens; a task adds those that it needs, so the same shards serve every task.
`row_lengths` gives the lengths of the resulting rows, from which batches are cut. Noise is a function of
(seed, draw, sample, position): a sample is masked alike on any number of ranks and in any batch, and differently every
time it is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.data.batches.arrays import (
    IGNORE_INDEX,
    BatchArrays,
    IntArray,
    StoredSamples,
    derive_sample_keys,
    range_mask,
    row_and_offset,
    scatter,
)
from regard.data.batches.keyed_random import Bits, derive, integers, uniform
from regard.data.batches.truncation import text_budget, truncate, truncated_lengths
from regard.text.specials import SpecialIds
from regard.text.tokenizer_pair import TokenizerPair

MASKING, REPLACE, REPLACEMENT, SPAN_SPLITS, KEPT_SPLITS, NEIGHBOR = range(6)  # purpose of a random key


class Task(Protocol):
    """The interface that the loader uses."""

    @property
    def packs_sequences(self) -> bool:
        """Whether documents are laid end to end and cut into full rows."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The streams that the task reads; they must be the first ones stored."""

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Convert lengths of stored streams (streams, n) to lengths of rows (sides, n)."""

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make the inputs and labels of a batch."""


@dataclass(frozen=True)
class Translate:
    """Translation by teacher forcing: source + [eos]; [bos] + target -> target + [eos].

    `language_tags` holds, for each entry of the corpus' `languages`, the token to put before the source: "<2de>"
    selects the target language of a multilingual model. Empty for models without tags.
    """

    source: SpecialIds
    target: SpecialIds
    language_tags: tuple[int, ...] = ()
    packs_sequences = False
    needs = ("source", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Add one token to both sides, and one to the source for the tag."""
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


@dataclass(frozen=True)
class LanguageModeling:
    """Causal language modeling: [bos] + text -> text + [eos], packed.

    Documents fill rows one after another, and each attends to itself only. Wherever rows are cut, every token of every
    document is a label exactly once per epoch. Without bos, the first token of a document has nothing to follow from
    and is no label.
    """

    specials: SpecialIds
    starts_with_bos: bool = True
    packs_sequences = True
    needs = ("source",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Add one: bos is an input, eos is a label."""
        return lengths[:1] + 1

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of full rows."""
        assert records.starts is not None  # noqa: S101 - the loader packs
        assert records.document_lengths is not None  # noqa: S101
        assert records.rows is not None  # noqa: S101
        sizes = records.lengths[0]
        ends = np.cumsum(sizes + 1)  # n positions have n inputs and n labels, shifted by one: n + 1 tokens
        tokens = np.empty(int(ends[-1]), np.int64)
        is_stored = np.ones(tokens.size, np.bool_)
        bos_indices = (ends - sizes - 1)[records.starts == 0]
        eos_indices = ends[records.starts + sizes == records.document_lengths + 1] - 1
        is_stored[bos_indices] = is_stored[eos_indices] = False
        tokens[bos_indices], tokens[eos_indices] = self.specials.bos, self.specials.eos
        tokens[is_stored] = records.tokens
        is_input, is_label = np.ones(tokens.size, np.bool_), np.ones(tokens.size, np.bool_)
        is_input[ends - 1] = False  # all but the last of a segment
        is_label[ends - sizes - 1] = False  # all but the first
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
class EncoderTask:
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
        """Put [cls] and [sep] around the texts; all labels are IGNORE_INDEX."""
        width = records.padded_width(int(lengths.max()) + 2)
        source = scatter(tokens, range_mask(1, lengths + 1, width), self.specials.pad)
        source[:, 0] = self.specials.cls
        source[np.arange(lengths.size), lengths + 1] = self.specials.sep
        return BatchArrays(
            np.full(source.shape, IGNORE_INDEX), source=source, source_valid=range_mask(0, lengths + 2, width)
        )


@dataclass(frozen=True)
class MaskedLM(EncoderTask):
    """Masked language modeling: predict masked tokens.

    Every token is masked with `mask_probability`, and at least one per sample. `masking` "mask" replaces all of them by
    the mask token; "bert" replaces 80 % by the mask token, 10 % by a random token, and leaves 10 %
    unchanged. With `boundaries`, whole words are masked: two arrays say for each token id whether it starts a word, and
    whether it ends one (`Tokenizer.token_bytes`).
    """

    seed: int
    text_ids: NDArray[np.int64]  # ids that are not special tokens
    mask_probability: float = 0.15
    masking: Literal["mask", "bert"] = "mask"
    boundaries: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch with masked tokens."""
        tokens = records.tokens.astype(np.int64)
        rows, offsets = row_and_offset(records.lengths[0])
        is_masked = self._select_masked(tokens, rows, offsets, records)
        arrays = self.add_special_tokens(
            self._replace_masked(tokens, is_masked, rows, offsets, records), records.lengths[0], records
        )
        arrays.labels[range_mask(1, records.lengths[0] + 1, arrays.labels.shape[1])] = np.where(
            is_masked, tokens, IGNORE_INDEX
        )
        return arrays

    def _select_masked(
        self, tokens: IntArray, rows: IntArray, offsets: IntArray, records: StoredSamples
    ) -> NDArray[np.bool_]:
        is_start = np.ones(tokens.size, np.bool_)
        if self.boundaries is not None:
            is_start = (offsets == 0) | self.boundaries[0][tokens] | np.roll(self.boundaries[1][tokens], 1)
        group_numbers = np.cumsum(is_start) - 1  # index of each token's word, counted across rows
        group_rows = rows[is_start]
        uniforms = uniform(derive(derive_sample_keys(self.seed, records, MASKING)[group_rows], offsets[is_start]))
        minima = np.ones(records.samples.size)
        np.minimum.at(minima, group_rows, uniforms)
        return ((uniforms < self.mask_probability) | (uniforms == minima[group_rows]))[group_numbers]

    def _replace_masked(
        self, tokens: IntArray, is_masked: NDArray[np.bool_], rows: IntArray, offsets: IntArray, records: StoredSamples
    ) -> IntArray:
        if self.masking == "mask":
            return np.where(is_masked, self.specials.mask, tokens)
        uniforms = uniform(derive(derive_sample_keys(self.seed, records, REPLACE)[rows], offsets))
        random_indices = integers(
            derive(derive_sample_keys(self.seed, records, REPLACEMENT)[rows], offsets), self.text_ids.size
        )
        random_tokens = self.text_ids[random_indices]
        replacements = np.where(uniforms < 0.8, self.specials.mask, np.where(uniforms < 0.9, random_tokens, tokens))
        return np.where(is_masked, replacements, tokens)


@dataclass(frozen=True)
class Classify(EncoderTask):
    """Sequence classification; a pair is read side by side: [cls] + first + [sep] + second + [sep].

    Rows longer than `max_length`, special tokens included, are truncated. With `types`, second + [sep] of a pair has
    token type 1, and the rest type 0.
    """

    pairs: bool = False
    max_length: int | None = None
    types: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """One text, or two for pairs."""
        return ("source", "target") if self.pairs else ("source",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Truncate, then add two special tokens, three for pairs."""
        return self.untruncated_lengths(
            lengths if self.max_length is None else truncated_lengths(lengths, self._text_budget(self.max_length))
        )

    def untruncated_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the lengths of the rows without truncation."""
        return lengths.sum(axis=0, keepdims=True) + (1 + len(lengths))

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch with one label per row."""
        if self.max_length is not None:
            records = truncate(records, self._text_budget(self.max_length))
        tokens, lengths = records.tokens, records.lengths.sum(axis=0)
        if self.pairs:
            second_starts = np.cumsum(lengths) - records.lengths[1]  # where the second text of each pair begins
            tokens, lengths = np.insert(tokens.astype(np.int64), second_starts, self.specials.sep), lengths + 1
        arrays = self.add_special_tokens(tokens, lengths, records)
        labels = np.where(records.labels < 0, IGNORE_INDEX, records.labels)
        types = None
        if self.pairs and self.types:
            second_starts = records.lengths[0] + 2  # after [cls] + first + [sep]
            columns = np.arange(arrays.labels.shape[1])
            types = ((columns >= second_starts[:, None]) & arrays.source_valid).astype(np.int64)  # (B, S)
        return BatchArrays(labels, source=arrays.source, source_valid=arrays.source_valid, types=types)

    def _text_budget(self, max_length: int) -> int:
        return text_budget(max_length, len(self.needs))


@dataclass(frozen=True)
class Embed(EncoderTask):
    """Contrastive pairs: both texts are read by themselves; the label of pair n is n, the number of its partner."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Two texts."""
        return ("source", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Add two special tokens to both sides."""
        return lengths[:2] + 2

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of pairs."""
        is_second = np.repeat(np.tile([False, True], records.samples.size), records.lengths.T.ravel())
        first, second = (
            self.add_special_tokens(records.tokens[is_second == side], records.lengths[int(side)], records)
            for side in (False, True)
        )
        return BatchArrays(
            np.arange(records.samples.size),
            source=first.source,
            source_valid=first.source_valid,
            target=second.source,
            target_valid=second.source_valid,
        )


@dataclass(frozen=True)
class Tag(EncoderTask):
    """Sequence tagging: the label of a word is on the word's first token."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The text, and the tag of each token."""
        return ("source", "tags")

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch with a label at the first token of each word."""
        lengths = records.lengths[0]
        is_tag = np.repeat(np.tile([False, True], lengths.size), np.repeat(lengths, 2))  # text, tags, text, tags...
        arrays = self.add_special_tokens(records.tokens[~is_tag], lengths, records)
        tags = records.tokens[is_tag].astype(np.int64)
        arrays.labels[range_mask(1, lengths + 1, arrays.labels.shape[1])] = np.where(tags > 0, tags - 1, IGNORE_INDEX)
        return arrays


@dataclass(frozen=True)
class SpanCorruption:
    """Span corruption (T5): replace spans by sentinel tokens; predict the sentinels and the spans.

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
        """Return source lengths without the spans and target lengths of the spans, each with sentinels and eos."""
        text_lengths = lengths[0].astype(np.int64)
        n_masked, n_spans = self.count_spans(text_lengths)
        return np.stack((text_lengths - n_masked + n_spans + 1, n_masked + n_spans + 1))

    def count_spans(self, lengths: IntArray) -> tuple[IntArray, IntArray]:
        """Return how many tokens are removed, and in how many spans: both follow from the length."""
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
                hint='Learn the vocabulary with more extra tokens (specials.extra = ["<x0>", "<x1>", ...]).',
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


TaskName = Literal["translate", "causal_lm", "masked_lm", "span_corruption", "classify", "tag", "embed"]


def build_task(
    kind: TaskName,
    tokenizers: TokenizerPair,
    *,
    seed: int = 1,
    languages: Sequence[tuple[str, ...]] | None = None,
    mask_probability: float = 0.15,
    masking: Literal["mask", "bert"] = "mask",
    whole_words: bool = False,
    pairs: bool = False,
    types: bool = False,
    max_length: int | None = None,
    starts_with_bos: bool = True,
) -> Task:
    """Build a task with the special tokens of its tokenizers.

    Args:
        kind: The name of the task.
        tokenizers: Tokenizers of source and target.
        seed: Seed of masking and span corruption.
        languages: "translate": `Shards.languages`, to put a target-language tag before every source.
        mask_probability: "fill": share of masked tokens or words.
        masking: "fill": replace by the mask token only, or as BERT does.
        whole_words: "fill": mask whole words.
        pairs: "classify": samples are pairs of texts.
        types: "classify": pairs have token types.
        max_length: "classify": truncate longer rows.
        starts_with_bos: "continue": texts begin with bos.
    """
    source, target = tokenizers.source, tokenizers.target
    match kind:
        case "translate":
            language_tags = tuple(source.specials.language_id(pair[-1]) for pair in languages or ())
            return Translate(source.specials, target.specials, language_tags)
        case "causal_lm":
            return LanguageModeling(source.specials, starts_with_bos)
        case "masked_lm":
            text_ids = np.array(sorted(set(range(source.size)) - source.specials.control))
            boundaries = (
                (np.array(source.token_bytes.is_start), np.array(source.token_bytes.is_end)) if whole_words else None
            )
            return MaskedLM(source.specials, seed, text_ids, mask_probability, masking, boundaries)
        case "span_corruption":
            return SpanCorruption(source.specials, tuple(source.specials.extra.values()), seed)
        case "classify":
            return Classify(source.specials, pairs, max_length, types)
        case "tag":
            return Tag(source.specials)
        case "embed":
            return Embed(source.specials)


def _random_partition(keys: Bits, lengths: IntArray, counts: IntArray) -> IntArray:
    """Split each length at random into `counts` non-empty parts; return the sizes of the parts, row after row."""
    n_slots = np.maximum(lengths - 1, 0)  # positions where a cut may be
    rows, offsets = row_and_offset(n_slots)
    slot_order = np.lexsort((derive(keys[rows], offsets), rows))
    is_cut = np.zeros(rows.size, np.bool_)
    # Cut at the first counts - 1 slots of each row, in random order.
    is_cut[slot_order] = offsets < np.maximum(counts - 1, 0)[rows]
    has_parts = counts > 0
    starts = np.cumsum(lengths[has_parts]) - lengths[has_parts]  # every row starts a part, and every cut another
    row_starts = np.zeros(lengths.size, np.int64)
    row_starts[has_parts] = starts
    edges = np.sort(np.concatenate((starts, (row_starts[rows] + offsets + 1)[is_cut])))
    return np.diff(np.append(edges, lengths[has_parts].sum()))
