"""Accept or reject by a score, with a guarantee: of the accepted cases at most a given share fails.

Learn then Test (Angelopoulos et al. 2021) with fixed-sequence testing: thresholds are tested from strict to lenient, on
cases that nothing was fitted on, until the first one whose exact binomial (Clopper-Pearson) bound exceeds the share.
The last threshold before it keeps the promise with the given confidence. That the thresholds are many costs nothing.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

STEPS = 100  # thresholds, from `MIN_ACCEPTED` to all cases
MIN_ACCEPTED = 0.2  # of the strictest threshold; among fewer cases, a single failure would end the sequence


@dataclass(frozen=True)
class AcceptanceRule:
    """Accept the cases whose score is at least `threshold`."""

    threshold: float
    accepted: float
    """Share of accepted cases."""
    failures: float
    """Share of failures among the accepted."""
    bound: float
    """Upper confidence bound of that share."""


def choose_threshold(
    scores: ArrayLike, has_failed: ArrayLike, max_failures: float, confidence: float
) -> AcceptanceRule | None:
    """Choose the threshold that accepts the most cases; None if no threshold keeps the promise.

    Args:
        scores: The score of each case; higher is better.
        has_failed: Whether the case is a failure.
        max_failures: The largest share of failures among the accepted cases.
        confidence: The probability that the promise holds, e.g. 0.9.
    """
    values, order = np.asarray(scores, np.float64), np.argsort(-np.asarray(scores, np.float64), kind="stable")
    failures = np.cumsum(np.asarray(has_failed, np.int64)[order])  # among the n best
    least = math.ceil(math.log(1 - confidence) / math.log(1 - max_failures))  # fewer prove nothing
    best: tuple[float, int, int] | None = None
    start = max(least, int(MIN_ACCEPTED * len(values)))
    for count in np.linspace(start, len(values), STEPS + 1).astype(int) if len(values) >= least else ():
        threshold = float(values[order[count - 1]])
        accepted = int((values >= threshold).sum())  # equal scores are accepted together
        failed = int(failures[accepted - 1])
        if binomial_tail(failed, accepted, max_failures) > 1 - confidence:  # the upper bound is above the share
            break
        best = threshold, accepted, failed
    if best is None:
        return None
    threshold, accepted, failed = best
    bound = upper_bound(failed, accepted, confidence)
    return AcceptanceRule(threshold, accepted / len(values), failed / accepted, bound)


def upper_bound(failed: int, count: int, confidence: float) -> float:
    """Return the one-sided Clopper-Pearson bound of a probability after `failed` failures in `count` cases.

    >>> round(upper_bound(0, 22, 0.9), 4), round(upper_bound(5, 100, 0.95), 4), upper_bound(3, 3, 0.9)
    (0.0994, 0.1023, 1.0)
    """
    if failed >= count:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):  # bisection: 50 binary digits
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_tail(failed, count, middle) > 1 - confidence else (low, middle)
    return high


def binomial_tail(most: int, count: int, probability: float) -> float:
    """Return the probability of at most `most` successes in `count` trials.

    >>> round(binomial_tail(1, 3, 0.5), 6)
    0.5
    """
    if not 0 < probability < 1:
        return float(probability <= 0 or most >= count)
    k = np.arange(most + 1)
    choices = np.concatenate(([0.0], np.cumsum(np.log(count - k[:-1]) - np.log(k[1:]))))  # log of n choose k
    return float(min(1.0, np.exp(choices + k * math.log(probability) + (count - k) * math.log1p(-probability)).sum()))


def fit_logistic(features: NDArray[np.float64], labels: ArrayLike, ridge: float = 1.0) -> NDArray[np.float64]:
    """Fit a logistic regression with a ridge penalty by Newton's method.

    Args:
        features: (n, k), standardized.
        labels: (n), true or false.
        ridge: Strength of the penalty; the intercept has none.

    Returns:
        The intercept and the weights, (k + 1).
    """
    design = np.column_stack((np.ones(len(features)), features))  # (n, k + 1)
    targets, penalty = np.asarray(labels, np.float64), np.diag([1e-9] + [ridge] * features.shape[1])
    weights = np.zeros(design.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        hessian = (design * (p * (1 - p) + 1e-9)[:, None]).T @ design + penalty
        weights = weights + np.linalg.solve(hessian, design.T @ (targets - p) - penalty @ weights)
    return weights
