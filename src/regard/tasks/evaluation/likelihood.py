"""Likelihood of texts under a model, and the model's calibration."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.measure.calibration import calibration_error
from regard.measure.likelihood import bits_per_byte, perplexity

if TYPE_CHECKING:
    from regard.tasks.scorer import ScoredText

BINS = 10


@dataclass(frozen=True)
class LikelihoodReport:
    """Likelihood and calibration of a model on texts. eos counts as a token, not as a byte."""

    tokens: int
    bytes: int
    perplexity: float
    bits_per_byte: float
    accuracy: float
    """Fraction of tokens that are the model's most probable token, from 0 to 1."""
    confidence: float
    """Mean probability of the most probable token; equals the accuracy of a calibrated model."""
    calibration_error: float
    """Expected calibration error with 10 bins of equal width, from 0 to 1."""
    calibration_error_equal_mass: float
    """Expected calibration error with 10 equal-mass bins."""
    temperature: float
    """Temperature by which the logits were divided."""


def summarize_likelihood(results: "Sequence[ScoredText]", temperature: float = 1.0) -> LikelihoodReport:
    """Summarize the results of a `Scorer` with this temperature."""
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
