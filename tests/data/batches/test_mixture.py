"""Weights of the sources of a mixture."""

from collections import Counter

import numpy as np
import pytest

from regard.base.keyed_random import make_key
from regard.data.batches.mixture import draw
from tests.data.batches.factories import COUNTS, SETTINGS, make_order

# Weights


@pytest.mark.parametrize("weight", [0.3, 0.5, 1.0, 1.7, 2.0, 3.25])
def test_weights_are_exact_over_epochs(weight: float) -> None:
    count, epochs = 97, 40
    total = Counter[int]()
    draws: dict[int, list[int]] = {}
    for epoch in range(epochs):
        samples, before = draw(make_key(5), count, weight, epoch)
        total.update(samples.tolist())
        for sample, times in zip(samples.tolist(), before.tolist(), strict=True):
            draws.setdefault(sample, []).append(times)
        assert total.total() == int(np.floor(count * weight * (epoch + 1) + 1e-9))
        assert max(total[sample] for sample in range(count)) - min(total[sample] for sample in range(count)) <= 1
    assert all(times == list(range(len(times))) for times in draws.values())  # the n-th draw knows that it is


def test_a_mixture_draws_by_weight_and_resumes() -> None:
    weights = [2.0, 1.0, 1.0, 0.5, 1.0, 1.0]
    order = make_order(COUNTS, SETTINGS, weights)
    seen = Counter(sample for _, _, picked in order.batches(0) for sample in picked.samples.tolist())
    assert all(seen[sample] == 2 for sample in range(90))
    assert sum(seen[sample] for sample in range(227, 287)) == 30
    assert all(seen[sample] == 1 for sample in [*range(90, 227), *range(287, sum(COUNTS))])
    pairs = [pair for _, _, p in order.batches(0) for pair in zip(p.samples.tolist(), p.draws.tolist(), strict=True)]
    assert len(set(pairs)) == len(pairs)
