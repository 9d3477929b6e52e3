"""How often an epoch draws each sample: the exact weights of sources.

A source of weight 2 gives each of its samples twice per epoch; one of weight 0.5 gives half of them, and the other half
in the next epoch. After e epochs at weight w, sample i has been drawn floor(w e + u_i) times, where the u_i are
evenly spaced in [0, 1) in an order that the seed decides. So over e epochs the draws of two samples differ by at most
one, a shard of n samples gives floor(n w e) in all (Hermite's identity), and at weight 1 every epoch draws everything
exactly once.
"""

import numpy as np
from numpy.typing import NDArray

from regard.base.keyed_random import Bits, permutation

Draws = NDArray[np.int64]


def draw(keys: Bits, count: int, weight: float, epoch: int) -> tuple[NDArray[np.int64], Draws]:
    """Return the samples of a shard that an epoch draws, and for each how often it was drawn before.

    At weight 1 the second is the epoch itself, so noise that depends on it differs in every epoch.

    >>> from regard.base.keyed_random import make_key
    >>> draw(make_key(1), 3, 2.0, epoch=5)
    (array([0, 0, 1, 1, 2, 2]), array([10, 11, 10, 11, 10, 11]))
    """
    if weight == 1:
        return np.arange(count), np.full(count, epoch)
    phases = np.empty(count)
    phases[permutation(keys, count)] = np.arange(count) / max(count, 1)  # u_i
    draws_before = np.floor(weight * epoch + phases).astype(np.int64)
    draw_counts = np.floor(weight * (epoch + 1) + phases).astype(np.int64) - draws_before
    samples = np.repeat(np.arange(count), draw_counts)
    repeats = np.arange(samples.size) - np.repeat(np.cumsum(draw_counts) - draw_counts, draw_counts)
    return samples, draws_before[samples] + repeats
