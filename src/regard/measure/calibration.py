"""Does a model know how sure it may be? Of the words that it gives 80 %, 80 % should be right.

A model that is too sure, or too shy, is mended by one number (Guo et al. 2017): its logits are divided by a
temperature, the one under which it is least surprised by texts that it never learned from. The order of the words stays
as it is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError

Binning = Literal["width", "mass"]
NllDerivatives = Callable[[float], tuple[float, float]]  # inverse temperature -> slope and bend of the surprise
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0


@dataclass(frozen=True)
class Bin:
    """Predictions of like confidence."""

    low: float
    high: float
    count: int
    confidence: float
    """Their mean confidence..."""
    accuracy: float
    """...and how many of them were right, both from 0 to 1."""


def make_bins(
    confidences: Sequence[float], correct: Sequence[bool], count: int = 10, binning: Binning = "width"
) -> list[Bin]:
    """Predictions by confidence, in bins of equal width or of equal mass (as many predictions in each).

    Empty bins are left out; the lower edge of a bin of equal width belongs to the one below.
    """
    if len(confidences) != len(correct) or not len(correct):
        raise RegardError(
            f"{len(confidences)} confidences for {len(correct)} answers.", fix="Give one for each, and one at least."
        )
    if count < 1:
        raise RegardError(f"There are no {count} bins.", fix="Use 1 or more.")
    probabilities, hits = np.asarray(confidences, np.float64), np.asarray(correct, np.float64)
    if not bool(((probabilities >= 0) & (probabilities <= 1)).all()):
        raise RegardError("A confidence lies outside 0 to 1.", fix="Give probabilities, not their logarithms.")
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
    """The expected calibration error: how far confidence and accuracy lie apart, averaged over predictions; 0 to 1.

    >>> round(calibration_error([0.9] * 10, [True] * 8 + [False] * 2), 6)
    0.1
    """
    calibration_bins = make_bins(confidences, correct, count, binning)
    total = sum(bucket.count for bucket in calibration_bins)
    return sum(bucket.count * abs(bucket.confidence - bucket.accuracy) for bucket in calibration_bins) / total


def fit_temperature(derivatives: NllDerivatives) -> float:
    """The temperature of least surprise, by Newton's method on its inverse b.

    The surprise -sum log p(word) is convex in b. `curve(b)` is its slope, sum(E[z] - z of the word), and its bend,
    sum(Var[z]), where z are the logits and the expectations are those of softmax(b z). Where a step would leave the
    interval in which the minimum is known to lie, the interval is halved instead.
    """
    low, high, b = 1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE, 1.0
    for _ in range(100):
        slope, curvature = derivatives(b)
        if not math.isfinite(slope + curvature):
            raise RegardError("The model's scores are not numbers (NaN).", fix="Use an earlier checkpoint.")
        low, high = (low, b) if slope > 0 else (b, high)
        step = b - slope / curvature if curvature > 0 else b
        new = step if low < step < high else math.sqrt(low * high)
        if abs(new - b) <= 1e-7 * b:
            if not MIN_TEMPERATURE * 1.001 < 1 / new < MAX_TEMPERATURE / 1.001:
                break
            return 1 / new
        b = new
    raise RegardError(
        f"No temperature from {MIN_TEMPERATURE} to {MAX_TEMPERATURE:g} fits: the model is right (or wrong) about nearly everything.",
        fix="Give more text, which the model has not learned from.",
    )


def nll_derivatives(logprobs: NDArray[np.floating], tokens: Sequence[int]) -> NllDerivatives:
    """The curve of log-probabilities, or logits, (places, vocabulary) and the words (places) that were right.

    >>> logs = np.log([[0.9, 0.1]] * 4)
    >>> round(fit_temperature(nll_derivatives(logs, [0, 0, 0, 1])), 6)  # right 3 times of 4, and 90 % sure: too sure
    2.0
    """
    z, targets = np.asarray(logprobs, np.float64), np.asarray(tokens)
    if z.ndim != 2 or len(z) != len(targets) or not len(targets):
        raise RegardError(f"{z.shape} log-probabilities for {len(targets)} words.", fix="Give one row for each word.")

    def derivatives(b: float) -> tuple[float, float]:
        p = np.exp(b * (z - z.max(axis=1, keepdims=True)))
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * z).sum(axis=1)
        variance = (p * (z - mean[:, None]) ** 2).sum()
        return float((mean - z[np.arange(len(z)), targets]).sum()), float(variance)

    return derivatives
