"""k-means: exact for numbers, Lloyd's algorithm for vectors. The result is the same on all machines."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MAX_ITERATIONS = 100
MAX_DISTANCES = 1 << 24  # distances in memory at once


def cluster_levels(counts: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the k levels, in rising order, with the least squared error for a histogram of levels 0, 1, 2, ...

    In one dimension a cluster is an interval, so dynamic programming finds the optimum. There are fewer centers than k
    if the histogram has fewer levels.

    >>> cluster_levels(np.array([9, 0, 0, 1, 1, 0, 0, 0, 5]), 3)
    array([0, 4, 8])
    """
    levels = np.flatnonzero(counts)
    weights = counts[levels].astype(np.float64)
    k = min(k, levels.size)
    count, total, square = (np.concatenate(([0.0], np.cumsum(weights * levels**power))) for power in range(3))
    start, end = np.ogrid[: levels.size + 1, : levels.size + 1]  # a cluster is levels[start:end]
    weight = np.where(end > start, count[end] - count[start], 1.0)
    error = square[end] - square[start] - (total[end] - total[start]) ** 2 / weight
    error = np.where(end > start, error, np.inf)
    best = error[0]  # of levels[:end], in as many clusters as the loop has added
    last_starts = []
    for _ in range(k - 1):
        candidates = best[:, None] + error
        last_starts.append(candidates.argmin(axis=0))
        best = candidates.min(axis=0)
    bounds = [levels.size]
    for starts in reversed(last_starts):
        bounds.append(int(starts[bounds[-1]]))
    bounds = [0, *reversed(bounds)]
    means = [(total[end] - total[start]) / (count[end] - count[start]) for start, end in pairwise(bounds)]
    return np.rint(means).astype(np.int64)


def cluster_vectors(points: NDArray[np.int64], weights: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return k centers (k, D) of weighted points (N, D), all integers, by Lloyd's algorithm.

    The first center is the heaviest point, each next one that with the largest weighted distance to those before it.
    Centers are rounded in every iteration: sums of integers are exact, so that all machines agree.

    >>> cluster_vectors(np.array([[0, 0], [2, 0], [9, 9], [9, 7]]), np.array([3, 3, 1, 1]), 2)
    array([[1, 0],
           [9, 8]])
    """
    k = min(k, len(points))
    chosen = [int(weights.argmax())]
    distances = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < k and distances.any():
        chosen.append(int((weights * distances).argmax()))
        distances = np.minimum(distances, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    centers = points[chosen]
    for _ in range(MAX_ITERATIONS):
        nearest = find_nearest(points, centers)
        total = np.bincount(nearest, weights, minlength=len(centers))
        sums = np.stack([np.bincount(nearest, weights * axis, minlength=len(centers)) for axis in points.T], axis=1)
        means = np.rint(sums / np.maximum(total, 1)[:, None]).astype(np.int64)
        moved = np.where(total[:, None] > 0, means, centers)
        if (moved == centers).all():
            break
        centers = moved
    return np.unique(centers, axis=0)


def find_nearest(points: NDArray[np.integer], centers: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return for each point (N, D) the index of the nearest center (k, D); of equally near ones the first.

    >>> find_nearest(np.array([[1], [5], [9]]), np.array([[0], [8]]))
    array([0, 1, 1])
    """
    matrix = centers.T.astype(np.float64)
    squares = (matrix**2).sum(axis=0)
    size = max(1, MAX_DISTANCES // len(centers))
    parts = [points[start : start + size].astype(np.float64) for start in range(0, len(points), size)]
    nearest = [(squares - 2 * part @ matrix).argmin(axis=1) for part in parts]
    return np.concatenate([np.zeros(0, np.int64), *nearest])
