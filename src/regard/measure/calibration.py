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

Cut = Literal["width", "mass"]
Curve = Callable[[float], tuple[float, float]]  # inverse temperature -> slope and bend of the surprise
COLDEST, HOTTEST = 0.01, 100.0


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


def bins(confidences: Sequence[float], right: Sequence[bool], count: int = 10, cut: Cut = "width") -> list[Bin]:
    """Predictions by confidence, in bins of equal width or of equal mass (as many predictions in each).

    Empty bins are left out; the lower edge of a bin of equal width belongs to the one below.
    """
    if len(confidences) != len(right) or not len(right):
        raise RegardError(
            f"{len(confidences)} confidences for {len(right)} answers.", fix="Give one for each, and one at least."
        )
    if count < 1:
        raise RegardError(f"There are no {count} bins.", fix="Use 1 or more.")
    sure, good = np.asarray(confidences, np.float64), np.asarray(right, np.float64)
    if not bool(((sure >= 0) & (sure <= 1)).all()):
        raise RegardError("A confidence lies outside 0 to 1.", fix="Give probabilities, not their logarithms.")
    order = np.argsort(sure, kind="stable")
    if cut == "mass":
        places = np.array_split(order, min(count, len(order)))
        edges = [(float(sure[some[0]]), float(sure[some[-1]])) for some in places]
    else:
        number = np.clip(np.ceil(sure[order] * count).astype(np.int64) - 1, 0, count - 1)
        places = [order[number == n] for n in range(count)]
        edges = [(n / count, (n + 1) / count) for n in range(count)]
    return [
        Bin(low, high, len(some), float(sure[some].mean()), float(good[some].mean()))
        for (low, high), some in zip(edges, places, strict=True)
        if len(some)
    ]


def calibration_error(
    confidences: Sequence[float], right: Sequence[bool], count: int = 10, cut: Cut = "width"
) -> float:
    """The expected calibration error: how far confidence and accuracy lie apart, averaged over predictions; 0 to 1.

    >>> round(calibration_error([0.9] * 10, [True] * 8 + [False] * 2), 6)
    0.1
    """
    found = bins(confidences, right, count, cut)
    total = sum(one.count for one in found)
    return sum(one.count * abs(one.confidence - one.accuracy) for one in found) / total


def fit_temperature(curve: Curve) -> float:
    """The temperature of least surprise, by Newton's method on its inverse b.

    The surprise -sum log p(word) is convex in b. `curve(b)` is its slope, sum(E[z] - z of the word), and its bend,
    sum(Var[z]), where z are the logits and the expectations are those of softmax(b z). Where a step would leave the
    interval in which the minimum is known to lie, the interval is halved instead.
    """
    low, high, b = 1 / HOTTEST, 1 / COLDEST, 1.0
    for _ in range(100):
        slope, bend = curve(b)
        if not math.isfinite(slope + bend):
            raise RegardError("The model's scores are not numbers (NaN).", fix="Use an earlier checkpoint.")
        low, high = (low, b) if slope > 0 else (b, high)
        step = b - slope / bend if bend > 0 else b
        new = step if low < step < high else math.sqrt(low * high)
        if abs(new - b) <= 1e-7 * b:
            if not COLDEST * 1.001 < 1 / new < HOTTEST / 1.001:
                break
            return 1 / new
        b = new
    raise RegardError(
        f"No temperature from {COLDEST} to {HOTTEST:g} fits: the model is right (or wrong) about nearly everything.",
        fix="Give more text, which the model has not learned from.",
    )


def curve_of(logs: NDArray[np.floating], words: Sequence[int]) -> Curve:
    """The curve of log-probabilities, or logits, (places, vocabulary) and the words (places) that were right.

    >>> logs = np.log([[0.9, 0.1]] * 4)
    >>> round(fit_temperature(curve_of(logs, [0, 0, 0, 1])), 6)  # right 3 times of 4, and 90 % sure: too sure
    2.0
    """
    z, right = np.asarray(logs, np.float64), np.asarray(words)
    if z.ndim != 2 or len(z) != len(right) or not len(right):
        raise RegardError(f"{z.shape} log-probabilities for {len(right)} words.", fix="Give one row for each word.")

    def curve(b: float) -> tuple[float, float]:
        p = np.exp(b * (z - z.max(axis=1, keepdims=True)))
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * z).sum(axis=1)
        spread = (p * (z - mean[:, None]) ** 2).sum()
        return float((mean - z[np.arange(len(z)), right]).sum()), float(spread)

    return curve
