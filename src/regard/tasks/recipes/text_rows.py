"""Rows of tokens: their length, their number in a corpus, and the resulting settings."""

from dataclasses import dataclass
from typing import Any, ClassVar

from regard.base.formatting import format_count, pluralize
from regard.config.model import AnyModelConfig
from regard.data.stats import SHORT_SENTENCE, CorpusStats
from regard.tasks.recipes.corpus import CorpusRequest
from regard.tasks.recipes.vocabulary import estimate_tokens

BATCH_TOKENS = 4096  # tokens per batch
MAX_LENGTH = 512  # tokens per row


@dataclass(frozen=True)
class TextRows:
    """Row format of corpus examples. This class is for text; subclasses override its methods."""

    corpus: CorpusRequest
    model: AnyModelConfig  # the preset's or the parent's
    labels: tuple[str, ...] = ()  # that the model predicts
    fills_context: bool = False  # texts are packed into rows of the context length; pairs are not
    joins_sides: bool = True  # both sides of a pair are one row
    masking: str = ""  # what is masked

    amount: ClassVar[str] = "so much text"  # amount in messages about overfitting
    min_step_tokens: ClassVar[int] = 0

    @property
    def stats(self) -> CorpusStats:
        """Corpus statistics."""
        return self.corpus.stats

    @property
    def packs_sequences(self) -> bool:
        """Whether every row is full."""
        return self.fills_context and self.stats.content != "pairs"

    def check_labels(self) -> None:
        """Raise RegardError if some examples have no label; text examples always have one."""

    def describe_size(self) -> str:
        """Describe the size of the corpus."""
        is_short = self.stats.content != "text" and self.stats.mean_length < SHORT_SENTENCE
        return describe_size(self.stats) + f" of {self.stats.mean_length:.0f} characters" * is_short

    def explain_input(self) -> list[str]:
        """Describe the model's input."""
        return []

    def explain_rows(self) -> list[str]:
        """Describe the row processing."""
        return [f"Masking: {self.masking}."] if self.masking else []

    def explain_augmentation(self) -> list[str]:
        """Describe the augmentation."""
        return []

    def model_changes(self) -> dict[str, Any]:
        """Return the model settings derived from the corpus."""
        return {}

    def data_settings(self, model: AnyModelConfig, step_tokens: int) -> dict[str, Any]:
        """Return settings of [data]: row length, batch size, sources, augmentation."""
        stack = model.encoder if model.family == "encoder_only" else model.decoder
        context_length = 256 if model.d_model < 256 else 512 if model.d_model < 768 else 1024
        max_length = context_length if self.fills_context else MAX_LENGTH
        max_length = max_length if stack.max_positions is None else min(max_length, stack.max_positions)
        return {
            "train": self.corpus.sources,
            "validation": self.corpus.validation,
            "max_length": max_length,
            "batch_tokens": max(max_length, min(BATCH_TOKENS, step_tokens)),
        }

    def typical_length(self, vocabulary_size: int, max_length: int) -> int:
        """Estimate tokens per row: the longer side of a pair, both sides in one row, or a full row of text."""
        if self.packs_sequences or self.corpus.has_documents:
            return max_length
        sides = [estimate_tokens(side, vocabulary_size) for side in (self.stats.source, self.stats.target)]
        tokens = (sum if self.joins_sides else max)(sides) / self.stats.examples
        return min(max_length, max(4, round(tokens) + 1))

    def count_tokens(self, vocabulary_size: int) -> float:
        """Estimate the tokens of the corpus, padding included."""
        if self.packs_sequences or self.corpus.has_documents:
            padding = 1.0 if self.packs_sequences else 1.1
            return estimate_tokens(self.stats.source, vocabulary_size) * padding
        max_length = self.corpus.requested("data.max_length") or MAX_LENGTH
        return 1.1 * self.typical_length(vocabulary_size, max_length) * self.stats.examples

    def measure(self, stats: CorpusStats) -> int:
        """Return the amount of data that determines the cost of a validation."""
        return stats.source.characters


def describe_size(stats: CorpusStats) -> str:
    """Return the size of a corpus: "1.1 million characters", "29,000 pairs"."""
    if stats.content == "text":
        return f"{format_count(stats.source.characters)} characters"
    return pluralize(stats.examples, stats.unit)
