"""K-means: levels and centers."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.k_means import cluster_levels, cluster_vectors


def least_error(counts: list[int], k: int) -> float:
    """The least squared error of any partition into k intervals, by trying all of them."""
    levels = np.repeat(np.arange(len(counts)), counts)
    distinct = np.flatnonzero(counts)
    errors = []
    for cuts in combinations(distinct[1:], min(k, distinct.size) - 1):
        parts = [levels[(levels >= start) & (levels < end)] for start, end in pairwise((0, *cuts, len(counts)))]
        errors.append(sum(((part - part.mean()) ** 2).sum() for part in parts))
    return float(min(errors))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=9).filter(any), st.integers(1, 4))
def test_levels_have_the_least_squared_error(counts: list[int], k: int) -> None:
    centers = cluster_levels(np.array(counts), k)
    levels = np.repeat(np.arange(len(counts)), counts)
    assert len(centers) == min(k, np.count_nonzero(counts))
    nearest = np.abs(levels[:, None] - centers).argmin(axis=1)
    error = sum(((part - part.mean()) ** 2).sum() for n in range(len(centers)) if (part := levels[nearest == n]).size)
    assert error == pytest.approx(least_error(counts, k), abs=0.5 * len(levels)), "centers are rounded"


def test_vectors_of_separate_groups_are_found() -> None:
    rng = np.random.default_rng(1)
    groups = np.array([[10, 10, 10], [200, 0, 0], [0, 200, 0], [250, 250, 250]])
    points = (groups[:, None] + rng.integers(-5, 6, (4, 50, 3))).clip(0, 255).reshape(-1, 3)
    centers = cluster_vectors(points, np.ones(200, np.int64), 4)
    assert np.abs(centers - np.unique(groups, axis=0)).max() <= 5
    assert len(cluster_vectors(points[:2], np.ones(2, np.int64), 4)) <= 2, "no more centers than points"
