"""Classify texts, or tag their words, with an encoder."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.formatting import CompactRepr, pluralize
from regard.base.labels import IGNORE_INDEX
from regard.config.model import AnyModelConfig, ClassificationHeadConfig, EncoderOnlyConfig, TaggingHeadConfig
from regard.config.run import RunConfig
from regard.config.sources import AnySourceConfig
from regard.data.batches.arrays import BatchArrays, StoredSamples
from regard.data.batches.batch import Batch
from regard.data.batches.rows import RowMaker
from regard.data.batches.truncation import text_budget, truncate, truncated_lengths
from regard.data.shards.shard import Shards
from regard.data.shards.tokenize import find_first_tokens
from regard.decode.tag_sequence import TagScheme
from regard.models.encoder_only import EncoderOnly
from regard.store.examples import ValidationExample
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.attention import RecordedAttention, record_attention
from regard.tasks.embedding import Embedder
from regard.tasks.encoder_logits import encoder_logits, make_types
from regard.tasks.encoder_rows import EncoderRows
from regard.tasks.encoding import add_special_tokens, as_list, check_both_lists
from regard.tasks.evaluation.data import find_label_column, find_tag_columns
from regard.tasks.evaluation.evaluable import EvaluatesLabels
from regard.tasks.film_probe import FilmProbe, iter_short
from regard.tasks.pipeline import Pipeline, one_or_many
from regard.tasks.replay import ModelRun, RankedLabels, ReplayInput, label_run
from regard.tasks.requests import DEFAULT_OPTIONS, BatchOptions, ModelRequest, ReplayOptions
from regard.tasks.task import (
    AnyAugmentation,
    Task,
    make_synthetic_batch,
    max_text_length,
    random_tokens,
    require_tokenizers,
)
from regard.tasks.validation import ValidationContext, score_labels
from regard.text.tokenizer_pair import TokenizerPair

_NON_SPACE = re.compile(r"[^ \t\r\n]+")  # as in training: a no-break space does not separate words


@dataclass(frozen=True, repr=False)
class Label(CompactRepr):
    """A label, usually the most probable one, and the probabilities of all labels."""

    label: str
    probability: float
    probabilities: dict[str, float] = field(repr=False)

    @staticmethod
    def choose(labels: Sequence[str], probabilities: Sequence[float], best: int | None = None) -> "Label":
        """Return the result for label `best`, by default the most probable one."""
        if best is None:
            best = max(range(len(probabilities)), key=probabilities.__getitem__)
        return Label(labels[best], probabilities[best], dict(zip(labels, probabilities, strict=True)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The label, as a tuple; see `TaggedText.labels`."""
        return (self.label,)

    def to_lines(self, source: str, n_best: int, /) -> list[str]:
        """Return a row for each of the most probable labels: label, probability, source."""
        best = sorted(self.probabilities.items(), key=lambda item: -item[1])[:n_best]
        return [f"{label}\t{probability:.1%}\t{source}" for label, probability in best]


@dataclass(frozen=True, repr=False)
class Classification(Label):
    """The label of a text."""

    is_truncated: bool
    """Whether the text was truncated to the number of learned positions."""


@dataclass(frozen=True)
class TaggedText:
    """The words of a text with one label each."""

    words: tuple[str, ...]
    tags: tuple[Label, ...]

    def __repr__(self) -> str:
        pairs = zip(self.words, self.tags, strict=True)
        return f"TaggedText({' '.join(f'{word}/{tag.label}' for word, tag in pairs)!r})"

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each word."""
        return tuple(tag.label for tag in self.tags)

    def to_lines(self, _source: str, n_best: int, /) -> list[str]:
        """Return one line of word/tag."""
        if n_best > 1:
            hint = "Leave out n_best; --json prints the probabilities of all tags."
            raise RegardError("A tagger prints one tag per word.", hint=hint)
        return [" ".join(f"{word}/{tag.label}" for word, tag in zip(self.words, self.tags, strict=True))]


class Classifier(EvaluatesLabels, Pipeline):
    """Classifies texts or tags words with an encoder.

    classifier = regard.load_classifier("my-model")
    classifier.classify("A fine film.").label
    """

    kind = "classification or tagging model"
    loader = "load_classifier"

    def __init__(self, model: EncoderOnly, tokenizers: TokenizerPair, settings: EncoderOnlyConfig) -> None:
        if not isinstance(settings.head, ClassificationHeadConfig | TaggingHeadConfig):
            raise RegardError(f"This model's task is '{settings.task}', which has no labels.", hint="Use `FillMask`.")
        check_vocabulary_sizes(settings, tokenizers, location="Classifier")
        self.model: EncoderOnly = model
        self.tokenizers = tokenizers
        self.settings: EncoderOnlyConfig = settings
        self.labels = settings.head.labels
        self._tags_words = isinstance(settings.head, TaggingHeadConfig)
        self.test_data = "tags" if self._tags_words else "labels"
        self.tag_scheme = TagScheme.from_labels(self.labels) if self._tags_words else None

    def predict(
        self,
        inputs: Sequence[str],
        *,
        pairs: Sequence[str] | None = None,
        unconstrained: bool = False,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[Classification] | list[TaggedText]:
        """Classify or tag each text, for `regard predict`."""
        if unconstrained:
            self.check_tag_scheme()
        if not self._tags_words:
            return self.classify(inputs, pairs, report=report)
        if pairs is not None:
            hint = "Leave out --pair and --pair-text."
            raise RegardError("A tagger does not support a second text.", hint=hint)
        return self.tag(inputs, constrained=not unconstrained, report=report)

    @overload
    def classify(  # type: ignore[overload-overlap]
        self, texts: str, pairs: str | None = None, batch_tokens: int = 4096, *, report: Callable[[int], None] = ...
    ) -> Classification: ...
    @overload
    def classify(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        batch_tokens: int = 4096,
        *,
        report: Callable[[int], None] = ...,
    ) -> list[Classification]: ...

    def classify(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        batch_tokens: int = 4096,
        *,
        report: Callable[[int], None] = lambda _: None,
    ) -> Classification | list[Classification]:
        """Classify one or several texts or text pairs. Texts that are too long are truncated.

        Args:
            texts: One text or several.
            pairs: The second text of each pair, for a model trained on pairs.
            batch_tokens: Maximum number of tokens in a batch, padding included.
            report: Called after each batch with the number of classified texts.

        Returns:
            The result for one text, or a list of results.
        """
        self._check_head(tags_words=False)
        check_both_lists(texts, pairs)
        tokenizer = self.tokenizers.source
        sides = [tokenizer.encode_ids(list(as_list(side))) for side in (texts, pairs) if side is not None]
        if len({len(side) for side in sides}) > 1:
            raise RegardError(
                f"{pluralize(len(sides[0]), 'text')} and {pluralize(len(sides[1]), 'second text')}.",
                hint="Give one second text for each text.",
            )
        rows, second_starts, is_truncated = self.encode_rows(sides)
        results: dict[int, Classification] = {}
        batches = encoder_logits(self.model, self.settings, tokenizer, rows, batch_tokens, second_starts)
        for indices, logits in batches:
            for index, probabilities in zip(indices, logits.softmax(dim=-1).tolist(), strict=True):
                results[index] = Classification(
                    **vars(Label.choose(self.labels, probabilities)), is_truncated=is_truncated[index]
                )
            report(len(indices))
        return results[0] if isinstance(texts, str) else [results[index] for index in range(len(rows))]

    @one_or_many
    def tag(
        self,
        texts: Sequence[str],
        batch_tokens: int = 4096,
        *,
        constrained: bool = True,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[TaggedText]:
        """Tag each word of one or several texts. Words are separated by whitespace.

        The label of a word is predicted at its first token, as in training.

        Args:
            texts: One text or several.
            batch_tokens: Maximum number of tokens in a batch, padding included.
            constrained: For entity tags (BIO, BIOES): choose the most probable valid sequence, in which I-x never
                follows O or another type. False chooses the most probable tag of each word independently.
            report: Called after each batch with the number of tagged texts.

        Returns:
            The tagged text, or a list of tagged texts.
        """
        self._check_head(tags_words=True)
        tokenizer = self.tokenizers.source
        words = [_NON_SPACE.findall(text) for text in texts]
        joined_texts = [" ".join(spans) for spans in words]
        encoded = [tokenizer.encode(text) for text in joined_texts]
        rows = [add_special_tokens(tokenizer, encoding.ids) for encoding in encoded]
        results: dict[int, TaggedText] = {}
        for indices, logits in encoder_logits(self.model, self.settings, tokenizer, rows, batch_tokens):
            for index, logprobs in zip(indices, logits.log_softmax(dim=-1), strict=True):
                first_tokens = find_first_tokens(joined_texts[index], encoded[index].offsets)
                tag_logprobs = logprobs[1 + torch.from_numpy(first_tokens).to(logprobs.device)]  # (words, labels)
                results[index] = TaggedText(tuple(words[index]), self._make_tags(tag_logprobs, constrained))
            report(len(indices))
        return [results[index] for index in range(len(rows))]

    def detect_source(self, paths: Sequence[str], columns: str | None) -> AnySourceConfig:
        """Detect the format of test data, with the model's tag or label columns."""
        source = super().detect_source(paths, columns)
        if columns is not None:
            return source
        if self.test_data == "labels":
            return find_label_column(source, self.labels)
        return find_tag_columns(source, self.folder)

    def warm_up(self) -> None:
        """Classify or tag short texts, and embed them."""
        self.predict(self.input.samples())
        self.embedder.warm_up()

    @cached_property
    def embedder(self) -> Embedder:
        """The pipeline that embeds texts with this model."""
        return Embedder.share(self)

    def run(self, requests: Sequence[ModelRequest], options: BatchOptions) -> list[Classification] | list[TaggedText]:  # noqa: ARG002
        """Classify or tag the texts of requests."""
        return self.predict([request.item for request in requests])

    def check_tag_scheme(self) -> None:
        """Raise an error for --unconstrained if the labels have no tagging scheme."""
        if self.tag_scheme is None:
            message = "--unconstrained is for entity taggers: the labels of this model are not in the scheme BIO or "
            raise RegardError(f"{message}BIOES.", hint="Leave out --unconstrained.")

    def record(self, text: str, pair: str | None = None) -> RecordedAttention:
        """Record the model's attention for a text or text pair; long texts are truncated."""
        sides = [self.tokenizers.source.encode_ids([side]) for side in (text, pair) if side is not None]
        rows, second_starts, _ = self.encode_rows(sides)
        types = make_types(self.settings, torch.tensor(rows, device=self.device), second_starts)
        return record_attention(self.model, self.tokenizers, source=rows[0], types=types)

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> ModelRun:  # noqa: ARG002
        """Classify a text or tag its words in a recordable way."""
        tokenizer = self.tokenizers.source
        if not self._tags_words:
            ((row,), _, _), result = self.encode_rows([[tokenizer.encode(text).ids]]), self.classify(text)
            return label_run(ReplayInput(self.model, row), result.label, result.probabilities)
        tagged = self.tag(text)
        joined = " ".join(tagged.words)
        encoding = tokenizer.encode(joined)
        rows = [1 + int(first) for first in find_first_tokens(joined, encoding.offsets)]
        labels = [self.labels.index(label) for label in tagged.labels]
        return ModelRun(
            ReplayInput(self.model, add_special_tokens(tokenizer, encoding.ids), rows=rows, labels=labels),
            tagged.to_lines(text, 1)[0],
            "the tags",
            [RankedLabels.sort(row, tag.probabilities) for row, tag in zip(rows, tagged.tags, strict=True)],
            self.labels.__getitem__,
        )

    def _describe(self) -> list[str]:
        return [f"{self.settings.task} with {pluralize(len(self.labels), 'label')}"]

    def encode_rows(self, sides: list[list[list[int]]]) -> tuple[list[list[int]], list[int] | None, list[bool]]:
        """Return the rows with special tokens, the start of each second text, and which rows are truncated."""
        lengths = np.array([[len(text) for text in side] for side in sides])  # (texts, n)
        limit = self.settings.encoder.max_positions
        kept_lengths = lengths if limit is None else truncated_lengths(lengths, text_budget(limit, len(sides)))
        rows = [
            add_special_tokens(
                self.tokenizers.source, *(text[:length] for text, length in zip(texts, per_side, strict=True))
            )
            for texts, per_side in zip(zip(*sides, strict=True), kept_lengths.T.tolist(), strict=True)
        ]
        second_starts = (kept_lengths[0] + 2).tolist() if len(sides) > 1 else None  # after [cls] + first + [sep]
        return rows, second_starts, [bool(per_side.any()) for per_side in (kept_lengths < lengths).T]

    def _make_tags(self, logprobs: Tensor, constrained: bool) -> tuple[Label, ...]:
        probabilities = logprobs.exp().tolist()
        if self.tag_scheme is None or not constrained:
            return tuple(Label.choose(self.labels, row) for row in probabilities)
        best = self.tag_scheme.decode(logprobs.cpu().double().numpy())
        return tuple(Label.choose(self.labels, row, tag) for row, tag in zip(probabilities, best, strict=True))

    def _check_head(self, *, tags_words: bool) -> None:
        if self._tags_words != tags_words:
            needed, method = ("tagging", "classify") if tags_words else ("text_classification", "tag")
            message = f"This model's task is '{self.settings.task}', not '{needed}'."
            raise RegardError(message, hint=f"Call `{method}`.")


@dataclass(frozen=True)
class ClassificationRows(EncoderRows):
    """Sequence classification; a pair is one sequence: [cls] + first + [sep] + second + [sep].

    Rows longer than `max_length`, including special tokens, are truncated. With `types`, second + [sep] of a pair has
    token type 1, and the rest has type 0.
    """

    pairs: bool = False
    max_length: int | None = None
    types: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """One text, or two for pairs."""
        return ("source", "target") if self.pairs else ("source",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Truncate, then add two special tokens, or three for pairs."""
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


class TextClassificationTask(Task):
    """Classify texts or text pairs."""

    pipeline_class = Classifier

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Truncate long texts; join both texts of a pair."""
        del augmentation
        shards.use_labels(run.model.head.labels)  # type: ignore[union-attr]
        specials, is_pair = require_tokenizers(tokenizers).source.specials, shards.streams == ("source", "target")
        types: bool = run.model.has_pair_types  # type: ignore[union-attr]
        return shards, ClassificationRows(specials, is_pair, max_text_length(run), types)

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Score the labels."""
        return score_labels(context)

    def film_probes(
        self, examples: Sequence[ValidationExample], tokenizers: TokenizerPair | None, settings: AnyModelConfig
    ) -> Iterator[FilmProbe]:
        """Yield short texts with their labels; pairs are not supported."""
        names: Sequence[str] = settings.head.labels  # type: ignore[union-attr]
        for example in iter_short(examples, require_tokenizers(tokenizers).source):
            if example.target is None:
                label = example.label or ""
                yield FilmProbe(example.source, label, [names.index(label)] if label in names else [])

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random tokens with the first label."""
        return make_synthetic_batch(torch.zeros(rows, dtype=torch.long), source=random_tokens(run, rows, length))
