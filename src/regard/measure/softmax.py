"""Probabilities from log-scores."""

from collections.abc import Sequence
from math import exp


def softmax(scores: Sequence[float]) -> list[float]:
    """Return exp(score) of each score, divided by their sum.

    >>> [round(p, 4) for p in softmax([-1000.0, -1001.0])]
    [0.7311, 0.2689]
    """
    weights = [exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]
