"""Results of translation and text generation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from regard.base.formatting import CompactRepr, join_lines
from regard.decode.mbr import minimum_bayes_risk
from regard.decode.protocol import Hypothesis
from regard.text.tokenizer import Tokenizer

Result = TypeVar("Result", bound="GeneratedText")


class Prediction(Protocol):
    """A prediction for one input: a dataclass that can format itself as lines of text."""

    def to_lines(self, source: str, n_best: int, /) -> list[str]:
        """Return the output lines of `regard predict`; `source` is the text or file name."""


@runtime_checkable
class Predictor(Protocol):
    """A pipeline that predicts one result per text or file."""

    kind: ClassVar[str]

    @property
    def predict(self) -> Callable[..., Sequence[Prediction]]:
        """Predict a result for each input; keyword arguments are the pipeline's options."""


@dataclass(frozen=True, repr=False)
class GeneratedText(CompactRepr):
    """A generated text with its tokens and their log-probabilities."""

    text: str
    score: float
    """Sum of the tokens' log-probabilities, eos included, divided by the length penalty."""
    tokens: tuple[int, ...] = field(repr=False)
    """Generated token ids; the last one is eos if the text `ended`."""
    logprobs: tuple[float, ...] = field(repr=False)
    """Log-probability of each token."""
    ended: bool
    """Whether the model generated eos; False if the text was truncated at its maximum length."""
    token_texts: tuple[str, ...] = field(default=(), repr=False)
    """Text of each token; empty for eos."""
    utility: float | None = None
    """Expected chrF against all samples (minimum Bayes risk decoding only)."""
    alternatives: "tuple[GeneratedText, ...]" = ()
    """The other texts, if `n_best` is greater than 1."""

    def to_lines(self, source: str, n_best: int, /) -> list[str]:
        """Return the text, or a row for each of several texts: source, score, text."""
        if n_best == 1:
            return [join_lines(self.text)]
        return [f"{source}\t{result.score:.4f}\t{join_lines(result.text)}" for result in (self, *self.alternatives)]


@dataclass(frozen=True, repr=False)
class Translation(GeneratedText):
    """The translation of one source."""

    alignment: tuple[tuple[int, int], ...] | None = None
    """Pairs (source word, target word), counted from 0, if an alignment was requested."""
    unsatisfied_terms: tuple[str, ...] = ()
    """Required phrases, and terms of the source, whose target forms the text lacks."""
    quality: float | None = None
    """Estimated probability that the translation is usable, from 0 to 1, if the model has a quality estimate."""
    rating: str | None = None
    """The quality in words: good, check or poor."""
    warnings: tuple[str, ...] = ()
    """Why to check the translation: it is empty, cut off or repetitive, or the source is unlike the training data."""

    def find_reasons(self, min_quality: float | None = None) -> tuple[str, ...]:
        """Return why to check the translation: its warnings, and a quality below the minimum, by default a poor one."""
        if self.quality is None or not self.is_below(min_quality):
            return self.warnings
        return (*self.warnings, f"quality {self.quality:.2f} ({self.rating})")

    def is_below(self, min_quality: float | None) -> bool:
        """Return whether the quality is below the minimum, by default poor; False if it is unknown."""
        if self.quality is None or min_quality is None:
            return self.rating == "poor"
        return self.quality < min_quality


EMPTY = Translation("", 0.0, (), (), ended=True)


def make_result(
    result_type: type[Result],
    hypotheses: list[Hypothesis],
    tokenizer: Tokenizer,
    n_best: int,
    *,
    should_rerank: bool = False,
    prompt: Sequence[int] = (),
) -> Result:
    """Convert hypotheses to a result: the first one as text, the next `n_best` - 1 as alternatives.

    Args:
        result_type: `Translation` or `GeneratedText`.
        hypotheses: Hypotheses of one text, best first.
        tokenizer: Tokenizer of the generated text.
        n_best: Number of hypotheses to keep.
        should_rerank: Rerank the hypotheses by minimum Bayes risk first.
        prompt: Tokens that the text continues; they determine whether it begins with a space.
    """
    results = [_to_result(result_type, hypothesis, tokenizer, prompt) for hypothesis in hypotheses]
    results = (rerank_mbr(results) if should_rerank else results)[:n_best]
    return replace(results[0], alternatives=tuple(results[1:])) if len(results) > 1 else results[0]


def rerank_mbr(candidates: list[Result]) -> list[Result]:
    """Return the distinct texts, highest expected chrF first, each with its most probable tokenization."""
    from regard.measure.sentence_chrf import SentenceChrf  # imports all metrics, which no other search needs

    most_probable = {candidate.text: candidate for candidate in sorted(candidates, key=lambda result: result.score)}
    ranked = minimum_bayes_risk([candidate.text for candidate in candidates], SentenceChrf())
    return [replace(most_probable[candidate.text], utility=candidate.utility) for candidate in ranked]


def _to_result(
    result_type: type[Result], hypothesis: Hypothesis, tokenizer: Tokenizer, prompt: Sequence[int]
) -> Result:
    token_texts = tuple(tokenizer.token_bytes.bytes[token].decode("utf-8", "replace") for token in hypothesis.tokens)
    return result_type(
        tokenizer.decode(hypothesis.without_eos, prompt),
        hypothesis.score,
        hypothesis.tokens,
        hypothesis.logprobs,
        hypothesis.ended,
        token_texts,
    )
