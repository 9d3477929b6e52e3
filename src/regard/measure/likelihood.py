"""Perplexity and bits per byte, from a negative log-likelihood in nats; the interval of a mean."""

import math
from collections.abc import Sequence

from regard.base.errors import RegardError


def perplexity(nats: float, tokens: int) -> float:
    """Compute exp(nats per token). Comparable only between models with the same vocabulary.

    >>> round(perplexity(3 * math.log(10), tokens=3), 6)
    10.0
    """
    try:
        return math.exp(_divide(nats, tokens, "tokens"))
    except OverflowError:
        return math.inf


def bits_per_byte(nats: float, size: int) -> float:
    """Compute the bits per byte of UTF-8 text, which are comparable between models with different vocabularies.

    >>> bits_per_byte(8 * math.log(2), size=4)
    2.0
    """
    return _divide(nats, size, "bytes") / math.log(2)


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of independent values, and the limits of its 95% interval by the normal distribution.

    >>> [round(value, 3) for value in mean_interval([1.0, 2.0, 3.0])]
    [2.0, 0.868, 3.132]
    """
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    half = 1.96 * math.sqrt(variance / len(values))
    return mean, mean - half, mean + half


def _divide(nats: float, count: int, unit: str) -> float:
    if count < 1:
        raise RegardError(f"There is nothing to measure: {count} {unit}.", hint="Pass a text that is not empty.")
    return nats / count
