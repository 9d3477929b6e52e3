"""How good a model is: its texts held against references, its surprise at them, and whether it knows how sure to be."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from regard.measure.bleu_chrf import bleu, chrf, exact_match
from regard.measure.bootstrap import METRICS, Comparison, paired_bootstrap
from regard.measure.breakdown import FrequencyBucket, LengthBucket, count_words, score_by_frequency, score_by_length
from regard.measure.calibration import calibration_error, fit_temperature
from regard.measure.error_rate import ter, wer
from regard.measure.likelihood import bits_per_byte, perplexity
from regard.measure.score import References, Score
from regard.pipeline.scorer import ScoredText, Scorer

BINS = 10


@dataclass(frozen=True)
class Quality:
    """Texts held against references."""

    texts: int
    scores: dict[str, Score]
    by_length: list[LengthBucket]
    """By words of the source; empty if there was none."""
    by_frequency: list[FrequencyBucket]
    """By how often the training text has a word; empty if there was none."""


@dataclass(frozen=True)
class LikelihoodReport:
    """What a model thinks of texts that are given. END counts as a token, and not as a byte."""

    tokens: int
    bytes: int
    perplexity: float
    bits_per_byte: float
    accuracy: float
    """How many tokens were the model's first choice, from 0 to 1."""
    confidence: float
    """The mean probability of the first choice: the same as the accuracy, if it is calibrated."""
    calibration_error: float
    """Expected calibration error, 10 bins of equal width, from 0 to 1."""
    calibration_error_equal_mass: float
    """The same with as many tokens in each bin."""
    temperature: float
    """By which the logits were divided."""


def score_translations(
    hypotheses: Sequence[str],
    references: References,
    sources: Sequence[str] | None = None,
    training: Iterable[str] | None = None,
) -> Quality:
    """BLEU, chrF, TER, exact match and word error rate, with breakdowns.

    `sources` gives the lengths, `training` (target text that the model learned from) the frequencies of words.

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


def compare(
    baseline: Sequence[str], system: Sequence[str], references: References, samples: int = 1000, seed: int = 12345
) -> list[Comparison]:
    """Paired bootstrap by BLEU, chrF and TER."""
    return [paired_bootstrap(baseline, system, references, metric, samples, seed) for metric in METRICS]


def summarize_likelihood(results: Sequence[ScoredText], temperature: float = 1.0) -> LikelihoodReport:
    """The summary of what a `Scorer` with this temperature found."""
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
    """The same scorer with the temperature under which it is least surprised by these texts (validation, not test)."""
    temperature = fit_temperature(scorer.curve(texts, sources, target_language=target_language, window=window))
    return Scorer(scorer.model, scorer.tokenizers, scorer.settings, temperature)
