"""Lengths and orders that several tests of batches use."""

import numpy as np
from numpy.typing import NDArray

from regard.base.keyed_random import derive, integers, make_key
from regard.data.batches.arrays import StoredSamples
from regard.data.batches.order import Order, OrderSettings


def make_lengths(count: int, seed: int, max_length: int = 60) -> NDArray[np.int64]:
    return 1 + integers(derive(make_key(seed), np.arange(2 * count)), max_length - 1).reshape(2, count)


def make_order(
    counts: list[int], settings: OrderSettings, weights: list[float] | None = None, max_length: int = 60
) -> Order:
    lengths = [make_lengths(count, shard, max_length) for shard, count in enumerate(counts)]
    return Order(counts, lambda shard: lengths[shard], settings, weights=weights, identity="test")


SETTINGS = OrderSettings(seed=3, max_tokens=256, max_length=64, window_size=3, pool_size=100)


COUNTS = [90, 130, 7, 60, 0, 210]


def make_samples(
    samples: list[tuple[list[int], ...]], numbers: list[int] | None = None, epoch: int = 0
) -> StoredSamples:
    count = len(samples)
    flat = [token for sample in samples for stream in sample for token in stream]
    return StoredSamples(
        tokens=np.array(flat, np.uint16),
        lengths=np.array([[len(sample[stream]) for sample in samples] for stream in range(len(samples[0]))]),
        samples=np.array(numbers if numbers is not None else range(count)),
        draws=np.full(count, epoch),
        languages=np.arange(count) % 2,
        labels=np.arange(count) - 1,
    )


def to_list(array: NDArray[np.int64] | None) -> list[list[int]]:
    assert array is not None
    return array.tolist()
