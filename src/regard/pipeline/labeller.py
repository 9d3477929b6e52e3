"""Texts with a label each, or words with a tag each, by an encoder that was trained to do so."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.data.beginnings import text_budget, truncated_lengths
from regard.data.tokenise import first_token_of_words
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.encoded import answers, framed
from regard.pipeline.limits import learned_positions
from regard.pipeline.sources import check_list
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.vocabularies import TokenizerPair

_WORD = re.compile(r"[^ \t\r\n]+")  # as in training: a no-break space is inside a word


@dataclass(frozen=True)
class Label:
    """A label and how sure the model is; the others are in `all`."""

    label: str
    probability: float
    all: dict[str, float]


@dataclass(frozen=True)
class Labelled(Label):
    """The label of a text."""

    cut: bool
    """The text is longer than the model has learned positions, and only its beginning was read."""


@dataclass(frozen=True)
class Tagged:
    """The words of a text, and a label for each."""

    words: tuple[str, ...]
    tags: tuple[Label, ...]


class Labeller:
    """labeller = regard.load("my-model"); labeller.label(["A fine film."])[0].label."""

    def __init__(self, model: EncoderOnly, vocabularies: TokenizerPair, settings: settings_of.EncoderOnly) -> None:
        if not isinstance(settings.head, settings_of.Classes | settings_of.Tags):
            raise RegardError(f"This model's task is '{settings.task}': it knows no labels.", fix="Use `Filler`.")
        check_vocabulary_sizes(settings, vocabularies, where="Labeller")
        self.model, self.vocabularies, self.settings = model, vocabularies, settings
        self.labels = settings.head.labels

    def label(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, batch_tokens: int = 4096
    ) -> list[Labelled]:
        """One label for each text, or for each text and its pair; of what is too long the beginning is read."""
        self._check("classify", "tag")
        for side in (texts, pairs or ()):
            check_list(side, "text", "label")
        tokenizer = self.vocabularies.source
        sides = [tokenizer.encode_ids(list(side)) for side in (texts, pairs) if side is not None]
        if len({len(side) for side in sides}) > 1:
            raise RegardError(f"{len(sides[0])} texts and {len(sides[1])} others.", fix="Give one for each.")
        rows, cut = self._rows(sides)
        found: dict[int, Labelled] = {}
        for places, logits in answers(self.model, self.settings, tokenizer, rows, batch_tokens):
            for place, chances in zip(places, logits.softmax(dim=-1).tolist(), strict=True):
                found[place] = Labelled(**vars(self._told(chances)), cut=cut[place])
        return [found[place] for place in range(len(rows))]

    def tag(self, texts: Sequence[str], batch_tokens: int = 4096) -> list[Tagged]:
        """A label for each word, where spaces separate words; it is read at the word's first piece, as in training."""
        self._check("tag", "label")
        check_list(texts, "text", "tag")
        tokenizer = self.vocabularies.source
        words = [_WORD.findall(text) for text in texts]
        plain = [" ".join(some) for some in words]
        encoded = [tokenizer.encode(text) for text in plain]
        rows = [framed(tokenizer, one.ids) for one in encoded]
        found: dict[int, Tagged] = {}
        for places, logits in answers(self.model, self.settings, tokenizer, rows, batch_tokens):
            for place, chances in zip(places, logits.softmax(dim=-1).tolist(), strict=True):
                heads = first_token_of_words(plain[place], encoded[place].offsets)
                tags = tuple(self._told(chances[1 + head]) for head in heads)
                found[place] = Tagged(tuple(words[place]), tags)
        return [found[place] for place in range(len(rows))]

    def _rows(self, sides: list[list[list[int]]]) -> tuple[list[list[int]], list[bool]]:
        """Texts in their frames, and which of them had to be cut."""
        lengths = np.array([[len(text) for text in side] for side in sides])  # (texts, n)
        limit = learned_positions(self.settings.encoder)
        read = lengths if limit is None else truncated_lengths(lengths, text_budget(limit, len(sides)))
        rows = [
            framed(self.vocabularies.source, *(text[:most] for text, most in zip(texts, some, strict=True)))
            for texts, some in zip(zip(*sides, strict=True), read.T.tolist(), strict=True)
        ]
        return rows, [bool(some.any()) for some in (read < lengths).T]

    def _told(self, chances: list[float]) -> Label:
        best = max(range(len(chances)), key=chances.__getitem__)
        return Label(self.labels[best], chances[best], dict(zip(self.labels, chances, strict=True)))

    def _check(self, task: str, other: str) -> None:
        if self.settings.task != task:
            raise RegardError(f"This model's task is '{self.settings.task}', not '{task}'.", fix=f"Call `{other}`.")
