"""Evaluate a model: metrics against references, predicted labels, likelihood of given texts, and calibration."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from regard.measure.bleu_chrf import bleu, chrf, exact_match
from regard.measure.bootstrap import METRICS, Comparison, paired_bootstrap
from regard.measure.breakdown import FrequencyBucket, LengthBucket, count_words, score_by_frequency, score_by_length
from regard.measure.calibration import calibration_error, fit_temperature
from regard.measure.error_rate import cer, ter, wer
from regard.measure.likelihood import bits_per_byte, perplexity
from regard.measure.metric import References, Score
from regard.pipeline.scorer import ScoredText, Scorer

BINS = 10


@dataclass(frozen=True)
class Quality:
    """Metrics of translations against references."""

    texts: int
    scores: dict[str, Score]
    by_length: list[LengthBucket]
    """Scores by number of source words; empty without sources."""
    by_frequency: list[FrequencyBucket]
    """Scores by frequency of a word in the training text; empty without training text."""


@dataclass(frozen=True)
class LikelihoodReport:
    """Likelihood and calibration of a model on given texts. eos counts as a token, not as a byte."""

    tokens: int
    bytes: int
    perplexity: float
    bits_per_byte: float
    accuracy: float
    """Fraction of tokens that the model finds most probable, from 0 to 1."""
    confidence: float
    """Mean probability of the most probable token; it equals the accuracy if the model is calibrated."""
    calibration_error: float
    """Expected calibration error with 10 bins of equal width, from 0 to 1."""
    calibration_error_equal_mass: float
    """Expected calibration error with 10 bins of equally many tokens."""
    temperature: float
    """Temperature that divided the logits."""


def score_translations(
    hypotheses: Sequence[str],
    references: References,
    sources: Sequence[str] | None = None,
    training: Iterable[str] | None = None,
) -> Quality:
    """Score translations by BLEU, chrF, TER, exact match and word error rate, with breakdowns.

    Args:
        hypotheses: Translations of a system.
        references: One reference, or several, for each translation.
        sources: Sources, for the breakdown by source length.
        training: Target side of the training corpus, for the breakdown by word frequency.

    >>> score_translations(["Zwei Hunde."], ["Zwei Hunde."]).scores["ter"].value
    0.0
    """
    measures: dict[str, Callable[[Sequence[str], References], Score]]
    measures = {"bleu": bleu, "chrf": chrf, "ter": ter, "exact_match": exact_match, "wer": wer}
    return Quality(
        len(hypotheses),
        {name: measure(hypotheses, references) for name, measure in measures.items()},
        [] if sources is None else score_by_length(hypotheses, references, sources),
        [] if training is None else score_by_frequency(hypotheses, references, count_words(training)),
    )


def score_transcripts(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """Score transcripts by character and word error rate and exact match.

    >>> score_transcripts(["seven"], ["eleven"])["cer"].value.__round__(1)
    33.3
    """
    measures = {"cer": cer, "wer": wer, "exact_match": exact_match}
    return {name: measure(hypotheses, references) for name, measure in measures.items()}


def score_captions(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """Score captions by BLEU, chrF and exact match.

    >>> score_captions(["a red shoe"], ["a red shoe"])["exact_match"].value
    100.0
    """
    measures: dict[str, Callable[[Sequence[str], References], Score]]
    measures = {"bleu": bleu, "chrf": chrf, "exact_match": exact_match}
    return {name: measure(hypotheses, references) for name, measure in measures.items()}


def compare(
    baseline: Sequence[str], system: Sequence[str], references: References, samples: int = 1000, seed: int = 12345
) -> list[Comparison]:
    """Compare two systems by paired bootstrap resampling of BLEU, chrF and TER."""
    return [paired_bootstrap(baseline, system, references, metric, samples, seed) for metric in METRICS]


def summarize_likelihood(results: Sequence[ScoredText], temperature: float = 1.0) -> LikelihoodReport:
    """Summarize the results of a `Scorer` that has this temperature."""
    tokens, byte_count = sum(len(result.logprobs) for result in results), sum(result.byte_count for result in results)
    nats = -sum(result.total_logprob for result in results)
    confidences = [min(math.exp(logprob), 1.0) for result in results for logprob in result.best_logprobs]
    correct = [is_correct for result in results for is_correct in result.correct]
    return LikelihoodReport(
        tokens=tokens,
        bytes=byte_count,
        perplexity=perplexity(nats, tokens),
        bits_per_byte=bits_per_byte(nats, byte_count),
        accuracy=sum(correct) / tokens,
        confidence=sum(confidences) / tokens,
        calibration_error=calibration_error(confidences, correct, BINS),
        calibration_error_equal_mass=calibration_error(confidences, correct, BINS, binning="mass"),
        temperature=temperature,
    )


def calibrate_scorer(
    scorer: Scorer,
    texts: Sequence[str],
    sources: Sequence[str] | None = None,
    *,
    target_language: str | Sequence[str] | None = None,
    window: int | None = None,
) -> Scorer:
    """Fit a temperature and return a scorer that uses it.

    Args:
        scorer: The scorer to calibrate; it stays unchanged.
        texts: Texts whose likelihood the temperature maximizes: validation data, not test data.
        sources: The source of each text (encoder-decoder only).
        target_language: Language of the texts (multilingual models).
        window: Number of tokens that a decoder-only model reads at once.
    """
    temperature = fit_temperature(scorer.curve(texts, sources, target_language=target_language, window=window))
    return Scorer(scorer.model, scorer.tokenizers, scorer.settings, temperature)
