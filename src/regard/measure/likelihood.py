"""Perplexity and bits per byte, from a negative log-likelihood in nats."""

import math

from regard.base.errors import RegardError


def perplexity(nats: float, tokens: int) -> float:
    """Compute exp(nats per token). It compares only models with the same vocabulary.

    >>> round(perplexity(3 * math.log(10), tokens=3), 6)
    10.0
    """
    try:
        return math.exp(_divide(nats, tokens, "tokens"))
    except OverflowError:
        return math.inf


def bits_per_byte(nats: float, size: int) -> float:
    """Compute the bits per byte of UTF-8 text; it compares models with different vocabularies.

    >>> bits_per_byte(8 * math.log(2), size=4)
    2.0
    """
    return _divide(nats, size, "bytes") / math.log(2)


def _divide(nats: float, count: int, unit: str) -> float:
    if count < 1:
        raise RegardError(f"There is nothing to measure: {count} {unit}.", fix="Give a text that is not empty.")
    return nats / count
