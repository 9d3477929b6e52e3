"""Fill gaps in texts with a masked language model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.formatting import CompactRepr, escape_control_characters
from regard.base.keyed_random import derive, integers, uniform
from regard.base.labels import IGNORE_INDEX
from regard.base.progress import begin
from regard.config.model import AnyModelConfig, EncoderOnlyConfig, MLMHeadConfig
from regard.config.run import RunConfig
from regard.data.batches.arrays import (
    BatchArrays,
    IntArray,
    StoredSamples,
    derive_sample_keys,
    range_mask,
    row_and_offset,
)
from regard.data.batches.batch import Batch
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards
from regard.models.encoder_only import EncoderOnly
from regard.store.examples import ValidationExample
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.attention import RecordedAttention, record_attention
from regard.tasks.embedding import Embedder
from regard.tasks.encoder_logits import encoder_logits
from regard.tasks.encoder_rows import EncoderRows
from regard.tasks.encoding import add_special_tokens, check_length
from regard.tasks.evaluation.options import Evaluation, EvaluationData, EvaluationOptions
from regard.tasks.film_probe import FilmProbe, iter_short
from regard.tasks.pipeline import Pipeline, one_or_many
from regard.tasks.pseudo_likelihood import pseudo_likelihood
from regard.tasks.replay import ModelRun, RankedLabels, ReplayInput
from regard.tasks.requests import DEFAULT_OPTIONS, ReplayOptions
from regard.tasks.task import (
    AnyAugmentation,
    Task,
    make_synthetic_batch,
    max_text_length,
    random_tokens,
    require_tokenizers,
)
from regard.text.pretokenize import SPACE_MARK
from regard.text.tokenizer_pair import TokenizerPair

GAP = "___"
REPLAYED_CANDIDATES = 10  # per gap


@dataclass(frozen=True, repr=False)
class FillCandidate(CompactRepr):
    """A candidate token for a gap."""

    text: str
    """The token text; ##ing continues the word before the gap (WordPiece)."""
    probability: float
    token: int


@dataclass(frozen=True, repr=False)
class FilledText(CompactRepr):
    """A text with every gap filled by its most probable token."""

    text: str
    gaps: tuple[tuple[FillCandidate, ...], ...]
    """Candidates for each gap, most probable first."""

    def to_lines(self, _source: str, _n_best: int, /) -> list[str]:
        """Return the filled text and a line of candidates for each gap."""
        lines = [", ".join(f"{choice.text} {choice.probability:.1%}" for choice in gap) for gap in self.gaps]
        return [escape_control_characters(line) for line in (self.text, *(f"  {line}" for line in lines))]


class FillMask(Pipeline):
    """Fills gaps with a masked language model.

        fill_mask = regard.load_fill_mask("my-model")
        fill_mask.fill("The ___ barks.").text

    A gap stands for one token. Several gaps in a text are filled independently.
    """

    kind = "masked language model"
    loader = "load_fill_mask"
    test_data = "text"

    def __init__(self, model: EncoderOnly, tokenizers: TokenizerPair, settings: EncoderOnlyConfig) -> None:
        if not isinstance(settings.head, MLMHeadConfig):
            raise RegardError(f"This model's task is '{settings.task}', not 'masked_lm'.", hint="Use `Classifier`.")
        check_vocabulary_sizes(settings, tokenizers, location="FillMask")
        self.model: EncoderOnly = model
        self.tokenizers = tokenizers
        self.settings: EncoderOnlyConfig = settings

    def predict(
        self,
        inputs: Sequence[str],
        *,
        n_best: int = 5,
        gap: str = GAP,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[FilledText]:
        """Fill the gaps of each text, for `regard predict`."""
        return self.fill(inputs, n_best, gap, report=report)

    @cached_property
    def embedder(self) -> Embedder:
        """The pipeline that embeds texts with this model."""
        return Embedder.share(self)

    @one_or_many
    def fill(
        self,
        texts: Sequence[str],
        n_best: int = 5,
        gap: str = GAP,
        batch_tokens: int = 4096,
        *,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[FilledText]:
        """Fill the gaps of one or several texts.

        Args:
            texts: One text or several, with at least one gap each.
            n_best: Number of candidates per gap.
            gap: String that marks a gap in the texts.
            batch_tokens: Maximum number of tokens in a batch, padding included.
            report: Called after each batch with the number of filled texts.

        Returns:
            The filled text, or a list of filled texts.
        """
        if n_best < 1:
            raise RegardError(f"n_best must be at least 1, got {n_best}.", hint="Use 1 or more.")
        if not gap:
            raise RegardError("The string that marks a gap is empty.", hint=f'Use a string such as "{GAP}".')
        n_best = min(n_best, self.tokenizers.source.size)
        rows = [self.encode_row(number, text, gap) for number, text in enumerate(texts, 1)]
        mask_id = self.tokenizers.source.specials.mask
        suppress_tokens = torch.tensor(self.tokenizers.source.specials.not_text, dtype=torch.long, device=self.device)
        results: list[FilledText] = [FilledText("", ())] * len(rows)
        for indices, logits in encoder_logits(self.model, self.settings, self.tokenizers.source, rows, batch_tokens):
            logits.index_fill_(2, suppress_tokens, float("-inf"))
            for index, text_logits in zip(indices, logits, strict=True):
                gaps = [position for position, token in enumerate(rows[index]) if token == mask_id]
                probabilities, tokens = text_logits[gaps].softmax(dim=-1).topk(n_best, dim=-1)  # (gaps, n_best)
                results[index] = self._make_filled_text(rows[index], gaps, probabilities.tolist(), tokens.tolist())
            report(len(indices))
        return results

    def evaluate(self, data: EvaluationData, options: EvaluationOptions) -> Evaluation:
        """Compute the pseudo-likelihood of texts."""
        options.check_used("masked models", ("--window",))
        texts, advance = data.inputs or [], begin("masking tokens")
        result = asdict(pseudo_likelihood(self, texts, window=options.window, report=advance))
        del result["logprobs"]
        return {"texts": len(texts), "pseudo_likelihood": result}

    def record(self, text: str, gap: str = GAP) -> RecordedAttention:
        """Record the model's attention for a text, with or without gaps."""
        return record_attention(self.model, self.tokenizers, source=self._encode_any_row(text, gap))

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> ModelRun:  # noqa: ARG002
        """Fill the gaps of a text in a recordable way; a text without gaps is only encoded."""
        row, specials = self._encode_any_row(text), self.tokenizers.source.specials
        if GAP not in text:
            return ModelRun(ReplayInput(self.model, row), text, "")
        filled = self.fill(text, REPLAYED_CANDIDATES)
        rows = [position for position, token in enumerate(row) if token == specials.mask]
        return ModelRun(
            ReplayInput(
                self.model,
                row,
                rows=rows,
                labels=[candidates[0].token for candidates in filled.gaps],
                suppressed=specials.not_text,
            ),
            filled.text,
            "the filled gaps" if len(rows) > 1 else "the filled gap",
            [
                RankedLabels(position, [choice.text for choice in gap], [choice.probability for choice in gap])
                for position, gap in zip(rows, filled.gaps, strict=True)
            ],
            self._name_token,
        )

    def _encode_any_row(self, text: str, gap: str = GAP) -> list[int]:
        """Encode a text with or without gaps."""
        tokenizer = self.tokenizers.source
        has_gap = gap and gap in text
        row = self.encode_row(1, text, gap) if has_gap else add_special_tokens(tokenizer, tokenizer.encode(text).ids)
        check_length("The text", row, self.settings.encoder.max_positions, location=text)
        return row

    def encode_row(self, number: int, text: str, gap: str = GAP) -> list[int]:
        """Encode a text with a mask token for each gap; `number` is for error messages."""
        tokenizer = self.tokenizers.source
        parts = text.split(gap)
        if len(parts) < 2:
            raise RegardError(
                f"Text {number} has no gap.", location=text[:60], hint=f"Write {gap} where a token is missing."
            )
        # The space before a word belongs to its first token, so the space before a gap belongs to the token that fills
        # it. If tokens have space marks (U+2581), the space after a gap is the mark of that token or of the next one.
        style = tokenizer.token_bytes.join_style
        texts = [part.removesuffix(" ") for part in parts[:-1]] + parts[-1:]
        if style in ("marks_before", "marks_after"):
            texts = texts[:1] + [text.removeprefix(" ") for text in texts[1:]]
        encoded = tokenizer.encode_ids(texts)
        # Each part was encoded as a text of its own, which has a mark at its start or end. Without a space next to the
        # gap there is none.
        for index, (part, ids) in enumerate(zip(parts, encoded, strict=True)):
            if style == "marks_before" and index and not part.startswith(" "):
                ids[:1] = self._remove_mark(ids[:1])
            if style == "marks_after" and index < len(parts) - 1 and not part.endswith(" "):
                ids[-1:] = self._remove_mark(ids[-1:])
        head, *tail = encoded
        return add_special_tokens(
            tokenizer, head + [token for ids in tail for token in (tokenizer.specials.mask, *ids)]
        )

    def _remove_mark(self, ids: list[int]) -> list[int]:
        """Return the token for the same text without its space mark, if any; empty for a mark alone."""
        tokenizer = self.tokenizers.source
        text = "".join(tokenizer.vocabulary[token] for token in ids).strip(SPACE_MARK)
        token = tokenizer.backend.token_to_id(text)
        return [] if not text else ids if token is None else [token]

    def _name_token(self, token: int) -> str:
        return self.tokenizers.source.token_texts([token])[0].strip()

    def _make_filled_text(
        self, row: list[int], gaps: list[int], probabilities: list[list[float]], tokens: list[list[int]]
    ) -> FilledText:
        tokenizer = self.tokenizers.source
        filled = list(row)
        for position, token_ids in zip(gaps, tokens, strict=True):
            filled[position] = token_ids[0]
        gap_candidates = tuple(
            tuple(
                FillCandidate(self._name_token(token), probability, token)
                for probability, token in zip(*pair, strict=True)
            )
            for pair in zip(probabilities, tokens, strict=True)
        )
        return FilledText(tokenizer.decode(filled), gap_candidates)


MASKING, REPLACE, REPLACEMENT = range(3)  # random keys, different for every task


@dataclass(frozen=True)
class MaskedLMRows(EncoderRows):
    """Masked language modeling: predict masked tokens.

    Every token is masked with `mask_probability`, and at least one per sample. `masking` "mask" replaces all of them
    with the mask token; "bert" replaces 80 % with the mask token, 10 % with a random token, and leaves 10 % unchanged.
    With `boundaries`, whole words are masked: two arrays indicate for each token id whether it starts and whether it
    ends a word (`Tokenizer.token_bytes`).
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


class MaskedLMTask(Task):
    """Predict masked tokens (BERT)."""

    pipeline_class = FillMask

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Split long texts and mask some tokens of each part."""
        del augmentation
        if shards.streams == ("source",):
            shards = shards.split_long(max_text_length(run) - 2)  # 2 special tokens are added
        source, options = require_tokenizers(tokenizers).source, run.options
        pieces, text_ids = source.token_bytes, np.array(sorted(set(range(source.size)) - source.specials.control))
        words = (np.array(pieces.is_start), np.array(pieces.is_end)) if options.whole_words else None
        return shards, MaskedLMRows(
            source.specials, run.data.seed, text_ids, options.probability, options.replacement, words
        )

    def film_probes(
        self,
        examples: Sequence[ValidationExample],
        tokenizers: TokenizerPair | None,
        settings: AnyModelConfig,  # noqa: ARG002
    ) -> Iterator[FilmProbe]:
        """Yield short texts with a gap in place of the word nearest to the middle that is one token."""
        tokenizer = require_tokenizers(tokenizers).source
        for example in iter_short(examples, tokenizer):
            encoding = tokenizer.encode(example.source)
            words = encoding.word_ids
            whole = [index for index, word in enumerate(words) if word is not None and words.count(word) == 1]
            if whole:
                chosen = min(whole, key=lambda index: abs(2 * index + 1 - len(words)))
                start, end = encoding.offsets[chosen]
                word = example.source[start:end]
                start += len(word) - len(word.lstrip())
                text = example.source[:start] + GAP + example.source[end:]
                yield FilmProbe(text, example.source, [encoding.ids[chosen]])

    def label_share(self, run: RunConfig) -> float:
        """Return the probability of masking."""
        return float(run.options.probability)

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random tokens, some of which are labels."""
        tokens = random_tokens(run, rows, length)
        labels = tokens.masked_fill(torch.rand(tokens.shape) > run.options.probability, IGNORE_INDEX)
        return make_synthetic_batch(labels, source=tokens)
