"""Calibration: of the tokens to which a model gives 80% probability, 80% should be correct.

Temperature scaling (Guo et al. 2017) corrects an over- or underconfident model with a single number: the logits are
divided by the temperature that minimizes the negative log-likelihood of held-out text. Token rankings do not change.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.base.errors import RegardError

Binning = Literal["width", "mass"]
NllDerivatives = Callable[[float], tuple[float, float]]  # inverse temperature -> first and second derivative
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0


@dataclass(frozen=True)
class Bin:
    """A bin of predictions with similar confidence."""

    low: float
    high: float
    count: int
    confidence: float
    """Mean confidence, from 0 to 1."""
    accuracy: float
    """Share of correct predictions, from 0 to 1."""


def make_bins(
    confidences: Sequence[float], correct: Sequence[bool], count: int = 10, binning: Binning = "width"
) -> list[Bin]:
    """Sort predictions into bins by confidence.

    Args:
        confidences: The probability of each prediction.
        correct: Whether each prediction was correct.
        count: The number of bins.
        binning: "width" for bins of equal width, "mass" for bins with equally many predictions.

    Returns:
        The bins; empty ones are left out. The lower edge of a bin of equal width belongs to the bin below.
    """
    if len(confidences) != len(correct) or not len(correct):
        raise RegardError(
            f"The numbers of confidences ({len(confidences)}) and predictions ({len(correct)}) differ or are 0.",
            hint="Pass one confidence per prediction, and at least one prediction.",
        )
    if count < 1:
        raise RegardError(f"count must be at least 1, got {count}.", hint="Use 1 or more bins.")
    probabilities, hits = np.asarray(confidences, np.float64), np.asarray(correct, np.float64)
    if not bool(((probabilities >= 0) & (probabilities <= 1)).all()):
        raise RegardError("A confidence is outside [0, 1].", hint="Pass probabilities, not log-probabilities.")
    order = np.argsort(probabilities, kind="stable")
    if binning == "mass":
        groups = np.array_split(order, min(count, len(order)))
        edges = [(float(probabilities[group[0]]), float(probabilities[group[-1]])) for group in groups]
    else:
        indices = np.clip(np.ceil(probabilities[order] * count).astype(np.int64) - 1, 0, count - 1)
        groups = [order[indices == n] for n in range(count)]
        edges = [(n / count, (n + 1) / count) for n in range(count)]
    return [
        Bin(low, high, len(group), float(probabilities[group].mean()), float(hits[group].mean()))
        for (low, high), group in zip(edges, groups, strict=True)
        if len(group)
    ]


def calibration_error(
    confidences: Sequence[float], correct: Sequence[bool], count: int = 10, binning: Binning = "width"
) -> float:
    """Compute the expected calibration error (ECE): mean |confidence - accuracy| over predictions, from 0 to 1.

    >>> round(calibration_error([0.9] * 10, [True] * 8 + [False] * 2), 6)
    0.1
    """
    calibration_bins = make_bins(confidences, correct, count, binning)
    total = sum(bucket.count for bucket in calibration_bins)
    return sum(bucket.count * abs(bucket.confidence - bucket.accuracy) for bucket in calibration_bins) / total


def fit_temperature(derivatives: NllDerivatives) -> float:
    """Find the temperature that minimizes the negative log-likelihood, by Newton's method on its inverse b.

    The negative log-likelihood -sum log p(token) is convex in b. `derivatives(b)` returns its first derivative,
    sum(E[z] - z of the token), and its second, sum(Var[z]), where z are the logits and expectations are under
    softmax(b z). If a step would leave the bracketing interval, the interval is halved instead.

    Raises:
        RegardError: If the logits are NaN, or no temperature within the limits fits.
    """
    low, high, b = 1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE, 1.0
    for _ in range(100):
        slope, curvature = derivatives(b)
        if not math.isfinite(slope + curvature):
            raise RegardError("The logits of the model are NaN.", hint="Use an earlier checkpoint.")
        low, high = (low, b) if slope > 0 else (b, high)
        step = b - slope / curvature if curvature > 0 else b
        new = step if low < step < high else math.sqrt(low * high)
        if abs(new - b) <= 1e-7 * b:
            if not MIN_TEMPERATURE * 1.001 < 1 / new < MAX_TEMPERATURE / 1.001:
                break
            return 1 / new
        b = new
    raise RegardError(
        f"No temperature from {MIN_TEMPERATURE} to {MAX_TEMPERATURE:g} fits: nearly all predictions are correct, or "
        "nearly all are wrong.",
        hint="Use more text that is not in the training data.",
    )
