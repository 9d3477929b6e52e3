import json
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.data.batches.order import DataPosition, Order, OrderSettings, batches_of_rank
from tests.data.batches.factories import COUNTS, SETTINGS, make_lengths, make_order

WORLD_SIZES = (1, 2, 3, 4, 8)


@pytest.mark.parametrize("trials", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_every_sample_once_whatever_the_ranks_and_stops(trials: int) -> None:
    """Many stops, another number of ranks after each: no sample twice, none missing, all ranks in step."""
    rng = random.Random(0)
    order = make_order(COUNTS, SETTINGS)
    lengths = np.concatenate([make_lengths(count, shard) for shard, count in enumerate(COUNTS)], axis=1)
    total = sum(1 for _ in order.batches(0))
    for trial in range(trials):
        gradient_accumulation, stop = rng.choice((1, 2, 3, 6, 8)), rng.randrange(1, total)
        position, seen = order.start, Counter[int]()
        while position.epoch == 0:
            world_size = rng.choice(WORLD_SIZES)
            fresh = make_order(COUNTS, SETTINGS)  # another process
            position = fresh.resume(DataPosition(**json.loads(json.dumps(asdict(position)))))
            planned = {number: picked for number, _, picked in fresh.batches(0, position.next_global_batch)}
            end = min(total, position.next_global_batch + -(-stop // gradient_accumulation) * gradient_accumulation)
            for first in range(position.next_global_batch, end, gradient_accumulation):
                last = min(first + gradient_accumulation, total)
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


def test_windows_mix_only_their_own_shards() -> None:
    order = make_order([50] * 10, SETTINGS)
    assert order.window_count == 4
    shards = [shard for index in range(4) for shard in order.plan_window(0, index).shards]
    assert sorted(shards) == list(range(10))
    for index in range(4):
        window = order.plan_window(0, index)
        assert set((window.samples // 50).tolist()) == set(window.shards)
    assert shards != [shard for index in range(4) for shard in order.plan_window(1, index).shards]


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
        "import hashlib; from tests.data.batches.factories import COUNTS, SETTINGS, make_order;"
        "order = make_order(COUNTS, SETTINGS);"
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
        replace(SETTINGS, packs_sequences=True),
    ]
    fingerprints = {same, *(make_order(COUNTS, settings).fingerprint for settings in other_settings)}
    fingerprints |= {
        make_order(COUNTS, SETTINGS, [1, 1, 1, 1, 1, 2]).fingerprint,
        make_order([*COUNTS, 1], SETTINGS).fingerprint,
    }
    fingerprints.add(Order(COUNTS, lambda _: make_lengths(1, 1), SETTINGS, identity="different content").fingerprint)
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
        make_order(COUNTS, replace(SETTINGS, packs_sequences=True, max_tokens=63))


def test_packed_batches_cover_every_position_once() -> None:
    order = make_order(COUNTS, replace(SETTINGS, packs_sequences=True))
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
