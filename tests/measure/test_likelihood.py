"""Likelihoods as scores."""

import math

import pytest

from regard.base.errors import RegardError
from regard.measure import bits_per_byte, perplexity


def test_likelihoods() -> None:
    assert perplexity(0.0, 5) == 1.0
    assert perplexity(10 * math.log(7), 10) == pytest.approx(7)
    assert perplexity(1e9, 1) == math.inf
    assert bits_per_byte(math.log(256), 1) == pytest.approx(8)
    with pytest.raises(RegardError, match="0 tokens"):
        perplexity(1.0, 0)
    with pytest.raises(RegardError, match="0 bytes"):
        bits_per_byte(1.0, 0)
