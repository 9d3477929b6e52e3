"""Calibration: of the tokens to which a model gives 80 % probability, 80 % should be correct.

Temperature scaling (Guo et al. 2017) corrects an over- or underconfident model by one number: the logits are divided
by the temperature that minimizes the negative log-likelihood of held-out text. The ranking of the tokens is unchanged.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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
            hint="Give one confidence per prediction, and at least one prediction.",
        )
    if count < 1:
        raise RegardError(f"count must be at least 1, got {count}.", hint="Use 1 or more bins.")
    probabilities, hits = np.asarray(confidences, np.float64), np.asarray(correct, np.float64)
    if not bool(((probabilities >= 0) & (probabilities <= 1)).all()):
        raise RegardError("A confidence lies outside 0 to 1.", hint="Give probabilities, not their logarithms.")
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
    sum(E[z] - z of the token), and its second, sum(Var[z]), where z are the logits and the expectations are those of
    softmax(b z). Where a step would leave the interval that brackets the minimum, the interval is halved instead.

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
        hint="Give more text that is not in the training data.",
    )


def nll_derivatives(logprobs: NDArray[np.floating], tokens: Sequence[int]) -> NllDerivatives:
    """Return the derivatives of the negative log-likelihood for `fit_temperature`.

    Args:
        logprobs: Log-probabilities or logits, (positions, vocabulary).
        tokens: The correct token at each position, (positions).

    >>> logprobs = np.log([[0.9, 0.1]] * 4)
    >>> round(fit_temperature(nll_derivatives(logprobs, [0, 0, 0, 1])), 6)  # 75 % correct at 90 %: overconfident
    2.0
    """
    z, targets = np.asarray(logprobs, np.float64), np.asarray(tokens)
    if z.ndim != 2 or len(z) != len(targets) or not len(targets):
        raise RegardError(
            f"logprobs has shape {z.shape} for {len(targets)} tokens.", hint="Give one row of logprobs per token."
        )

    def derivatives(b: float) -> tuple[float, float]:
        p = np.exp(b * (z - z.max(axis=1, keepdims=True)))
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * z).sum(axis=1)
        variance = (p * (z - mean[:, None]) ** 2).sum()
        return float((mean - z[np.arange(len(z)), targets]).sum()), float(variance)

    return derivatives
