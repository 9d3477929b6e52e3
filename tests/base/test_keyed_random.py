"""Random numbers and permutations that depend on a key only."""

from collections import Counter

import numpy as np
import pytest

from regard.base.keyed_random import make_key, permutation, splitmix64, spread_permutation, uniform


@pytest.mark.parametrize("count", [0, 1, 2, 13, 100, 1597])
def test_spread_permutations_are_complete_and_neighbours_balance(count: int) -> None:
    for seed in range(5):
        order = spread_permutation(make_key(seed), count)
        assert sorted(order.tolist()) == list(range(count))
        for few in (2, 4, 8):
            sums = np.lib.stride_tricks.sliding_window_view(order, few)[::2].mean(axis=1) if count >= few else order[:0]
            assert (np.abs(sums - (count - 1) / 2) <= 0.5 * count / few).all()


# Chance


def test_random_numbers_are_uniform_and_shuffles_are_complete() -> None:
    numbers = uniform(splitmix64(np.arange(100_000, dtype=np.uint64)))
    assert abs(np.histogram(numbers, 50, (0, 1))[0] - 2000).max() < 250
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.02
    assert sorted(permutation(make_key(1, 2), 500).tolist()) == list(range(500))
    firsts = Counter(int(permutation(make_key(seed), 4)[0]) for seed in range(4000))
    assert all(abs(count - 1000) < 150 for count in firsts.values())
    assert make_key(1, 2) != make_key(2, 1)
