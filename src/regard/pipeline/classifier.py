"""Texts with a label each, or words with a tag each, by an encoder that was trained to do so."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.data.batches.truncation import text_budget, truncated_lengths
from regard.data.shards.tokenize import first_token_of_words
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.encoded import add_special_tokens, encoder_logits
from regard.pipeline.encoding import check_list
from regard.pipeline.limits import max_positions
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.tokenizer_pair import TokenizerPair

_WORD = re.compile(r"[^ \t\r\n]+")  # as in training: a no-break space is inside a word


@dataclass(frozen=True)
class Label:
    """A label and how sure the model is; the others are in `all`."""

    label: str
    probability: float
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Classification(Label):
    """The label of a text."""

    is_truncated: bool
    """The text is longer than the model has learned positions, and only its beginning was read."""


@dataclass(frozen=True)
class TaggedText:
    """The words of a text, and a label for each."""

    words: tuple[str, ...]
    tags: tuple[Label, ...]


class Classifier:
    """labeller = regard.load("my-model"); labeller.label(["A fine film."])[0].label."""

    def __init__(self, model: EncoderOnly, tokenizers: TokenizerPair, settings: settings_of.EncoderOnly) -> None:
        if not isinstance(settings.head, settings_of.Classes | settings_of.Tags):
            raise RegardError(f"This model's task is '{settings.task}': it knows no labels.", fix="Use `Filler`.")
        check_vocabulary_sizes(settings, tokenizers, where="Labeller")
        self.model, self.tokenizers, self.settings = model, tokenizers, settings
        self.labels = settings.head.labels

    def classify(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, batch_tokens: int = 4096
    ) -> list[Classification]:
        """One label for each text, or for each text and its pair; of what is too long the beginning is read."""
        self._check("classify", "tag")
        for side in (texts, pairs or ()):
            check_list(side, "text", "label")
        tokenizer = self.tokenizers.source
        sides = [tokenizer.encode_ids(list(side)) for side in (texts, pairs) if side is not None]
        if len({len(side) for side in sides}) > 1:
            raise RegardError(f"{len(sides[0])} texts and {len(sides[1])} others.", fix="Give one for each.")
        rows, is_truncated = self._encode_rows(sides)
        results: dict[int, Classification] = {}
        for indices, logits in encoder_logits(self.model, self.settings, tokenizer, rows, batch_tokens):
            for index, probabilities in zip(indices, logits.softmax(dim=-1).tolist(), strict=True):
                results[index] = Classification(
                    **vars(self._make_label(probabilities)), is_truncated=is_truncated[index]
                )
        return [results[index] for index in range(len(rows))]

    def tag(self, texts: Sequence[str], batch_tokens: int = 4096) -> list[TaggedText]:
        """A label for each word, where spaces separate words; it is read at the word's first piece, as in training."""
        self._check("tag", "label")
        check_list(texts, "text", "tag")
        tokenizer = self.tokenizers.source
        words = [_WORD.findall(text) for text in texts]
        joined_texts = [" ".join(text_words) for text_words in words]
        encoded = [tokenizer.encode(text) for text in joined_texts]
        rows = [add_special_tokens(tokenizer, encoding.ids) for encoding in encoded]
        results: dict[int, TaggedText] = {}
        for indices, logits in encoder_logits(self.model, self.settings, tokenizer, rows, batch_tokens):
            for index, probabilities in zip(indices, logits.softmax(dim=-1).tolist(), strict=True):
                first_tokens = first_token_of_words(joined_texts[index], encoded[index].offsets)
                tags = tuple(self._make_label(probabilities[1 + first_token]) for first_token in first_tokens)
                results[index] = TaggedText(tuple(words[index]), tags)
        return [results[index] for index in range(len(rows))]

    def _encode_rows(self, sides: list[list[list[int]]]) -> tuple[list[list[int]], list[bool]]:
        """Texts in their frames, and which of them had to be cut."""
        lengths = np.array([[len(text) for text in side] for side in sides])  # (texts, n)
        limit = max_positions(self.settings.encoder)
        kept_lengths = lengths if limit is None else truncated_lengths(lengths, text_budget(limit, len(sides)))
        rows = [
            add_special_tokens(
                self.tokenizers.source, *(text[:length] for text, length in zip(texts, per_side, strict=True))
            )
            for texts, per_side in zip(zip(*sides, strict=True), kept_lengths.T.tolist(), strict=True)
        ]
        return rows, [bool(per_side.any()) for per_side in (kept_lengths < lengths).T]

    def _make_label(self, probabilities: list[float]) -> Label:
        best = max(range(len(probabilities)), key=probabilities.__getitem__)
        return Label(self.labels[best], probabilities[best], dict(zip(self.labels, probabilities, strict=True)))

    def _check(self, task: str, alternative: str) -> None:
        if self.settings.task != task:
            raise RegardError(
                f"This model's task is '{self.settings.task}', not '{task}'.", fix=f"Call `{alternative}`."
            )
