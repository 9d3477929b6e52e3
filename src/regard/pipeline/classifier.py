"""Classify texts, or tag their words, with an encoder."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.formatting import CompactRepr, pluralize
from regard.config.model import ClassificationHeadConfig, EncoderOnlyConfig, TaggingHeadConfig
from regard.data.batches.truncation import text_budget, truncated_lengths
from regard.data.shards.tokenize import find_first_tokens
from regard.decode.tag_sequence import TagScheme
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.attention import RecordedAttention, record_attention
from regard.pipeline.encoding import Pipeline, add_special_tokens, as_list, check_both_lists, encoder_logits, make_types
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.tokenizer_pair import TokenizerPair

_NON_SPACE = re.compile(r"[^ \t\r\n]+")  # as in training: a no-break space does not separate words


@dataclass(frozen=True, repr=False)
class Label(CompactRepr):
    """The label, usually the most probable one, and the probabilities of all labels."""

    label: str
    probability: float
    probabilities: dict[str, float] = field(repr=False)

    @staticmethod
    def choose(labels: Sequence[str], probabilities: Sequence[float], best: int | None = None) -> "Label":
        """Return the label of index `best`, by default the most probable one."""
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
    """Whether the model read only the beginning, because the text has more tokens than learned positions."""


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
            raise RegardError("A tagger prints one tag for each word.", hint=hint)
        return [" ".join(f"{word}/{tag.label}" for word, tag in zip(self.words, self.tags, strict=True))]


class Classifier(Pipeline):
    """Classifies texts or tags words with an encoder.

    classifier = regard.load_classifier("my-model")
    classifier.classify("A fine film.").label
    """

    kind = "classification or tagging model"

    def __init__(self, model: EncoderOnly, tokenizers: TokenizerPair, settings: EncoderOnlyConfig) -> None:
        if not isinstance(settings.head, ClassificationHeadConfig | TaggingHeadConfig):
            raise RegardError(f"This model's task is '{settings.task}': it has no labels.", hint="Use `FillMask`.")
        check_vocabulary_sizes(settings, tokenizers, location="Classifier")
        self.model: EncoderOnly = model
        self.tokenizers = tokenizers
        self.settings: EncoderOnlyConfig = settings
        self.labels = settings.head.labels
        self.tag_scheme = TagScheme.from_labels(self.labels) if settings.task == "tag" else None

    def predict(
        self,
        inputs: Sequence[str],
        *,
        pairs: Sequence[str] | None = None,
        unconstrained: bool = False,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[Classification] | list[TaggedText]:
        """Classify or tag each text; what `regard predict` does."""
        if unconstrained:
            self.check_tag_scheme()
        if self.settings.task == "classify":
            return self.classify(inputs, pairs, report=report)
        if pairs is not None:
            hint = "Leave out --pair and --pair-text."
            raise RegardError("This model tags words and takes no second text.", hint=hint)
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
        """Classify one text or pair of texts, or each of several. A text that is too long is truncated.

        Args:
            texts: One text or several.
            pairs: The second text of each pair, for a model that was trained on pairs.
            batch_tokens: Maximum number of tokens in a batch, padding included.
            report: Called with the number of texts that were just classified.

        Returns:
            The label of one text, or a list with that of each text in their order.
        """
        self._check_task("classify", "tag")
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

    @overload
    def tag(  # type: ignore[overload-overlap]
        self, texts: str, batch_tokens: int = 4096, *, constrained: bool = True, report: Callable[[int], None] = ...
    ) -> TaggedText: ...
    @overload
    def tag(
        self,
        texts: Sequence[str],
        batch_tokens: int = 4096,
        *,
        constrained: bool = True,
        report: Callable[[int], None] = ...,
    ) -> list[TaggedText]: ...

    def tag(
        self,
        texts: str | Sequence[str],
        batch_tokens: int = 4096,
        *,
        constrained: bool = True,
        report: Callable[[int], None] = lambda _: None,
    ) -> TaggedText | list[TaggedText]:
        """Tag each word of one text or of several texts. White space separates words.

        The label of a word is predicted at its first token, as in training.

        Args:
            texts: One text or several.
            batch_tokens: Maximum number of tokens in a batch, padding included.
            constrained: For tags of entities (BIO, BIOES): choose the most probable sequence that the scheme allows, in
                which I-x never follows O or another type. False: the most probable tag of each word by itself.
            report: Called with the number of texts that were just tagged.

        Returns:
            One tagged text, or a list of them in the order of the texts.
        """
        self._check_task("tag", "classify")
        tokenizer = self.tokenizers.source
        words = [_NON_SPACE.findall(text) for text in as_list(texts)]
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
        return results[0] if isinstance(texts, str) else [results[index] for index in range(len(rows))]

    def check_tag_scheme(self) -> None:
        """Refuse a choice between constrained and unconstrained tags if the labels have no scheme."""
        if self.tag_scheme is None:
            message = (
                "--unconstrained is for taggers of entities: the labels of this model are not in the scheme BIO or "
            )
            raise RegardError(f"{message}BIOES.", hint="Leave out --unconstrained.")

    def record(self, text: str, pair: str | None = None) -> RecordedAttention:
        """Record the attention of the model while it reads a text, or a pair of texts; a long text is truncated."""
        sides = [self.tokenizers.source.encode_ids([side]) for side in (text, pair) if side is not None]
        rows, second_starts, _ = self.encode_rows(sides)
        types = make_types(self.settings, torch.tensor(rows, device=self.device), second_starts)
        return record_attention(self.model, self.tokenizers, source=rows[0], types=types)

    def _describe(self) -> list[str]:
        return [f"{self.settings.task} with {pluralize(len(self.labels), 'label')}"]

    def encode_rows(self, sides: list[list[list[int]]]) -> tuple[list[list[int]], list[int] | None, list[bool]]:
        """Return the rows with special tokens, where the second text of each pair begins, and which are truncated."""
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

    def _check_task(self, task: str, alternative: str) -> None:
        if self.settings.task != task:
            raise RegardError(
                f"This model's task is '{self.settings.task}', not '{task}'.", hint=f"Call `{alternative}`."
            )
