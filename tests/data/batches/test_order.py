import json
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.data.batches.cutting import BatchShapes, cut_by_tokens, pack_documents, sort_by_length
from regard.data.batches.keyed_random import (
    derive,
    integers,
    make_key,
    permutation,
    splitmix64,
    spread_permutation,
    uniform,
)
from regard.data.batches.mixture import draw
from regard.data.batches.order import DataPosition, Order, OrderSettings, batches_of_rank

WORLD_SIZES = (1, 2, 3, 4, 8)


def make_lengths(count: int, seed: int, max_length: int = 60) -> NDArray[np.int64]:
    return 1 + integers(derive(make_key(seed), np.arange(2 * count)), max_length - 1).reshape(2, count)


def make_order(
    counts: list[int], settings: OrderSettings, weights: list[float] | None = None, max_length: int = 60
) -> Order:
    lengths = [make_lengths(count, shard, max_length) for shard, count in enumerate(counts)]
    return Order(counts, lambda shard: lengths[shard], settings, weights=weights, identity="test")


SETTINGS = OrderSettings(seed=3, max_tokens=256, max_length=64, window_size=3, pool_size=100)
COUNTS = [90, 130, 7, 60, 0, 210]


def test_every_sample_once_whatever_the_ranks_and_stops() -> None:
    """200 stops, another number of ranks after each: no sample twice, none missing, all ranks in step."""
    rng = random.Random(0)
    order = make_order(COUNTS, SETTINGS)
    lengths = np.concatenate([make_lengths(count, shard) for shard, count in enumerate(COUNTS)], axis=1)
    total = sum(1 for _ in order.batches(0))
    for trial in range(200):
        accumulate, stop = rng.choice((1, 2, 3, 6, 8)), rng.randrange(1, total)
        position, seen = order.start, Counter[int]()
        while position.epoch == 0:
            world_size = rng.choice(WORLD_SIZES)
            fresh = make_order(COUNTS, SETTINGS)  # another process
            position = fresh.resume(DataPosition(**json.loads(json.dumps(asdict(position)))))
            planned = {number: picked for number, _, picked in fresh.batches(0, position.next_global_batch)}
            end = min(total, position.next_global_batch + -(-stop // accumulate) * accumulate)
            for first in range(position.next_global_batch, end, accumulate):
                last = min(first + accumulate, total)
                shares = [batches_of_rank(first, last, rank, world_size) for rank in range(world_size)]
                assert len({len(numbers) for numbers in shares}) == 1  # equally many steps
                for rank, numbers in enumerate(shares):
                    for number in numbers:
                        if number is not None:
                            assert number % world_size == rank
                            picked = planned[number].samples
                            assert picked.size * lengths[:, picked].max() <= SETTINGS.max_tokens
                            seen.update(picked.tolist())
            position = replace(position, epoch=int(end == total), next_global_batch=0 if end == total else end)
        assert seen == Counter(range(sum(COUNTS))), trial


def test_epochs_and_seeds_differ_and_repeat() -> None:
    def numbers(seed: int, epoch: int) -> list[int]:
        order = make_order(COUNTS, replace(SETTINGS, seed=seed))
        return [sample for _, _, picked in order.batches(epoch) for sample in picked.samples.tolist()]

    assert numbers(1, 0) == numbers(1, 0)
    assert numbers(1, 0) != numbers(1, 1)
    assert numbers(1, 0) != numbers(2, 0)
    assert sorted(numbers(1, 0)) == sorted(numbers(1, 1)) == list(range(sum(COUNTS)))


@pytest.mark.parametrize("pool", [131072, 333])
def test_any_few_consecutive_batches_have_all_lengths(pool: int) -> None:
    order = make_order([4000, 4000], replace(SETTINGS, pool_size=pool))
    lengths = np.concatenate([make_lengths(4000, shard) for shard in range(2)], axis=1).max(axis=0)
    batches = [lengths[picked.samples].mean() for _, _, picked in order.batches(epoch=0)]
    shuffled = np.random.default_rng(1).permutation(batches)
    spreads = [np.convolve(means, np.full(4, 0.25), mode="valid")[::4].std() for means in (batches, shuffled)]
    assert spreads[0] < 0.4 * spreads[1]


@pytest.mark.parametrize("count", [0, 1, 2, 13, 100, 1597])
def test_spread_permutations_are_complete_and_neighbours_balance(count: int) -> None:
    for seed in range(5):
        order = spread_permutation(make_key(seed), count)
        assert sorted(order.tolist()) == list(range(count))
        for few in (2, 4, 8):
            sums = np.lib.stride_tricks.sliding_window_view(order, few)[::2].mean(axis=1) if count >= few else order[:0]
            assert (np.abs(sums - (count - 1) / 2) <= 0.5 * count / few).all()


def test_windows_mix_only_their_own_shards() -> None:
    order = make_order([50] * 10, SETTINGS)
    assert order.window_count == 4
    shards = [shard for index in range(4) for shard in order.plan(0, index).shards]
    assert sorted(shards) == list(range(10))
    for index in range(4):
        window = order.plan(0, index)
        assert set((window.samples // 50).tolist()) == set(window.shards)
    assert shards != [shard for index in range(4) for shard in order.plan(1, index).shards]


def test_skipping_to_a_batch_gives_the_same_batches() -> None:
    order = make_order(COUNTS, SETTINGS)
    whole = [(number, picked.samples.tolist()) for number, _, picked in order.batches(2)]
    for first in (0, 1, 17, len(whole) - 1, len(whole)):
        for fresh in (order, make_order(COUNTS, SETTINGS)):  # one that has planned the windows before, one that has not
            batches = [(number, picked.samples.tolist()) for number, _, picked in fresh.batches(2, first)]
            assert batches == whole[first:]


def test_the_same_order_in_another_process() -> None:
    """Checkpoints rely on it: every later version must give this order, or change `format`."""
    code = (
        "import hashlib; from tests.data.batches.test_order import *; order = make_order(COUNTS, SETTINGS);"
        "print(hashlib.sha256(b' '.join(p.samples.tobytes() for _, _, p in order.batches(5))).hexdigest())"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    for salt in ("0", "4242"):
        environment = os.environ | {"PYTHONHASHSEED": salt, "PYTHONPATH": path}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
        assert done.stdout.strip() == GOLDEN


GOLDEN = "59e2a549dc28fb019ca256ab602b8e042d129835fc6b9ea81ebbe7860a5100f4"


def test_the_fingerprint_covers_every_setting_of_the_order() -> None:
    same = make_order(COUNTS, SETTINGS).fingerprint
    other_settings = [replace(SETTINGS, seed=4), replace(SETTINGS, max_tokens=300), replace(SETTINGS, max_length=60)]
    other_settings += [
        replace(SETTINGS, window_size=2),
        replace(SETTINGS, pool_size=50),
        replace(SETTINGS, packed=True),
    ]
    fingerprints = {same, *(make_order(COUNTS, settings).fingerprint for settings in other_settings)}
    fingerprints |= {
        make_order(COUNTS, SETTINGS, [1, 1, 1, 1, 1, 2]).fingerprint,
        make_order([*COUNTS, 1], SETTINGS).fingerprint,
    }
    fingerprints.add(Order(COUNTS, lambda _: make_lengths(1, 1), SETTINGS, identity="other content").fingerprint)
    assert len(fingerprints) == 10
    with pytest.raises(RegardError, match="have changed"):
        make_order(COUNTS, SETTINGS).resume(DataPosition(0, 3, "other"))


def test_long_samples_are_listed_and_excluded() -> None:
    order = make_order(COUNTS, replace(SETTINGS, max_length=50))
    lengths = np.concatenate([make_lengths(count, shard) for shard, count in enumerate(COUNTS)], axis=1)
    long = np.flatnonzero(lengths.max(axis=0) > 50)
    assert 10 < long.size < 300
    assert list(order.iter_too_long()) == [(int(sample), int(lengths[:, sample].max())) for sample in long]
    seen = [sample for _, _, picked in order.batches(0) for sample in picked.samples.tolist()]
    assert sorted(seen + long.tolist()) == list(range(sum(COUNTS)))
    assert OrderSettings(max_tokens=30, max_length=64).length_limit == 30


def test_a_batch_must_hold_a_packed_row() -> None:
    with pytest.raises(RegardError, match="cannot hold a row of 64"):
        make_order(COUNTS, replace(SETTINGS, packed=True, max_tokens=63))


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


# Cuts


def test_batches_are_as_large_as_the_budget_allows() -> None:
    """With a budget too small for rounded shapes, batches take every row that fits."""
    sizes = np.sort(np.random.default_rng(1).integers(1, 50, 1000))
    starts = cut_by_tokens(sizes, BatchShapes(200, 50))
    ends = [*starts[1:], 1000]
    for start, end in zip(starts, ends, strict=True):
        assert (end - start) * sizes[end - 1] <= 200
        assert end == 1000 or (end + 1 - start) * sizes[end] > 200


@pytest.mark.parametrize("budget", [1000, 2048, 4096, 10_000])
def test_batches_have_few_shapes_and_nearly_fill_the_budget(budget: int) -> None:
    max_length = 200
    sizes = np.sort(np.random.default_rng(2).gamma(3.0, 14.0, 100_000).astype(int).clip(1, max_length))
    shapes = BatchShapes(budget, max_length)
    starts = cut_by_tokens(sizes, shapes)
    products = Counter[int]()
    for start, end in pairwise([*starts, sizes.size]):
        width = shapes.padded_width(end - start, int(sizes[end - 1]))
        assert sizes[end - 1] <= width <= max_length
        assert (end - start) * width <= budget
        products[(end - start) * width] += 1
    assert len(products) <= 64
    odd = sum(count for product, count in products.items() if product % shapes.size_multiple)
    assert odd <= 0.05 * len(starts)
    assert len(starts) <= 1.1 * count_greedy_batches(sizes.tolist(), budget)
    assert sum(product * count for product, count in products.items()) <= 1.03 * sizes.sum()


def count_greedy_batches(sizes: list[int], max_tokens: int) -> int:
    """Count the batches if each takes every row that fits."""
    batches, start = 0, 0
    for end, size in enumerate(sizes):
        if not batches or (end + 1 - start) * size > max_tokens:
            batches, start = batches + 1, end
    return batches


@pytest.mark.parametrize("budget", [1, 7, 100, 1000, 4096, 4160, 65_536])
def test_every_length_up_to_the_budget_fits(budget: int) -> None:
    for max_length in (1, 50, budget):
        shapes = BatchShapes(budget, min(max_length, budget))
        for length in range(1, min(max_length, budget) + 1, 1 + budget // 500):
            rows = shapes.max_rows(length)
            assert rows >= 1
            assert rows >= 0.8 * (budget // length) - 1
            for n_rows in {*range(1, min(rows, 300) + 1), rows}:
                assert length <= shapes.padded_width(n_rows, length) <= shapes.max_length
                assert n_rows * shapes.padded_width(n_rows, length) <= budget


def test_neighbours_have_similar_lengths() -> None:
    lengths = make_lengths(20_000, 7)
    order = sort_by_length(lengths)
    assert sorted(order.tolist()) == list(range(20_000))
    assert (np.diff(lengths[:, order].max(axis=0)) >= 0).all()

    def waste(indices: NDArray[np.int64]) -> float:
        cuts = cut_by_tokens(lengths[:, indices].max(axis=0), BatchShapes(4096, 512))
        sizes = np.diff([*cuts, indices.size])
        padded = sum(int((np.maximum.reduceat(side[indices], cuts) * sizes).sum()) for side in lengths)
        return 1 - int(lengths.sum()) / padded

    assert waste(order) < 0.6 * waste(np.argsort(lengths.max(axis=0), kind="stable"))


@pytest.mark.parametrize("row", [1, 4, 7, 1000])
def test_packing_covers_every_token_once(row: int) -> None:
    lengths = np.random.default_rng(2).integers(1, 30, 60)
    packed = pack_documents(lengths, row)
    covered = [
        (int(document), int(begin) + place)
        for document, begin, length in zip(packed.documents, packed.starts, packed.lengths, strict=True)
        for place in range(length)
    ]
    assert covered == [(document, place) for document, length in enumerate(lengths) for place in range(length)]
    filled = np.add.reduceat(packed.lengths, packed.row_offsets[:-1])
    assert (filled[:-1] == row).all()
    assert 0 < filled[-1] <= row


def test_packed_batches_cover_every_position_once() -> None:
    order = make_order(COUNTS, replace(SETTINGS, packed=True))
    seen = Counter[tuple[int, int]]()
    for _, _, picked in order.batches(1):
        assert picked.starts is not None
        assert picked.lengths is not None
        assert picked.rows is not None
        assert np.bincount(picked.rows, picked.lengths).max() <= SETTINGS.max_length
        assert picked.rows.max() < SETTINGS.max_tokens // SETTINGS.max_length
        for sample, begin, length in zip(picked.samples, picked.starts, picked.lengths, strict=True):
            seen.update((int(sample), int(begin) + place) for place in range(length))
    lengths = np.concatenate([make_lengths(count, shard)[0] for shard, count in enumerate(COUNTS)])
    assert seen == Counter((sample, place) for sample, length in enumerate(lengths) for place in range(length))


# Chance


def test_random_numbers_are_uniform_and_shuffles_are_complete() -> None:
    numbers = uniform(splitmix64(np.arange(100_000, dtype=np.uint64)))
    assert abs(np.histogram(numbers, 50, (0, 1))[0] - 2000).max() < 250
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.02
    assert sorted(permutation(make_key(1, 2), 500).tolist()) == list(range(500))
    firsts = Counter(int(permutation(make_key(seed), 4)[0]) for seed in range(4000))
    assert all(abs(count - 1000) < 150 for count in firsts.values())
    assert make_key(1, 2) != make_key(2, 1)
