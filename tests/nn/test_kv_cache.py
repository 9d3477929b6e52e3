import random
from typing import Any

import pytest
import torch

from regard.base.errors import ShapeError
from regard.nn import kv_cache
from regard.nn.kv_cache import KVCache


def make_cache(rows: int = 2, capacity: int = 6, count: int = 3) -> KVCache:
    cache = KVCache(capacity)
    keys = torch.arange(rows * count, dtype=torch.float32).reshape(rows, 1, count, 1)
    cache.append("self", keys, keys + 0.5)
    cache.advance(count)
    return cache


def test_bytes_are_exact_and_room_is_taken_once() -> None:
    cache = KVCache(capacity=10)
    assert cache.bytes == 0
    for _ in range(3):
        cache.append("self", torch.ones(4, 2, 1, 8), torch.ones(4, 2, 1, 6))
        cache.advance(1)
        assert cache.bytes == 4 * 2 * 10 * (8 + 6) * 4
    cache.store_memory("cross", torch.ones(4, 2, 5, 8), torch.ones(4, 2, 5, 8))
    assert cache.bytes == 4 * 2 * 10 * (8 + 6) * 4 + 2 * 4 * 2 * 5 * 8 * 4


def test_more_than_the_capacity_is_refused_with_a_way_out() -> None:
    cache = make_cache(capacity=4)
    with pytest.raises(ShapeError, match=r"holds 4 tokens per row, but 5 are needed[\s\S]*larger capacity"):
        cache.append("self", torch.ones(2, 1, 2, 1), torch.ones(2, 1, 2, 1))


def test_crop_back_to_equal_lengths_needs_no_lengths() -> None:
    cache = make_cache()
    cache.crop([3, 1])
    assert cache.lengths is not None
    assert cache.positions(2, torch.device("cpu")).tolist() == [[3, 4], [1, 2]]
    cache.crop([1, 1])
    assert cache.lengths is None
    assert cache.positions(2, torch.device("cpu")).tolist() == [[1, 2]]


def test_crop_cannot_add() -> None:
    for lengths in (4, -1, [4, 1], [2, -1]):
        with pytest.raises(ShapeError, match="Cannot crop"):
            make_cache().crop(lengths)
    cache = make_cache()
    cache.crop([3, 1])
    with pytest.raises(ShapeError, match=r"Cannot crop rows of \[3, 1\] tokens to \[2, 2\]"):
        cache.crop([2, 2])
    with pytest.raises(ShapeError, match="1 lengths for 2 rows"):
        cache.crop([1])
    cache.crop(2)  # the short row stays as it is
    assert cache.lengths == [2, 1]


def test_rows_that_leave_take_their_length_with_them() -> None:
    cache = make_cache(capacity=5)
    cache.crop([3, 1])
    cache.reorder(torch.tensor([1]))
    assert (cache.length, cache.lengths) == (1, None)
    keys, _ = cache.append("self", torch.full((1, 1, 4, 1), 9.0), torch.zeros(1, 1, 4, 1))  # capacity for four more
    assert keys.flatten().tolist() == [3, 9, 9, 9, 9]
    cache.advance(4)
    cache.reorder(torch.tensor([], dtype=torch.long))
    assert cache.length == 5  # rows are gone, what was one number stays one


def test_room_that_was_never_written_says_nothing_even_if_it_is_not_a_number() -> None:
    cache = make_cache(capacity=6)
    keys, values = cache._buffers["self"]
    keys[:, :, 3:] = values[:, :, 3:] = float("nan")
    cache.crop([3, 1])
    keys, values = cache.append("self", torch.ones(2, 1, 2, 1), torch.ones(2, 1, 2, 1))
    assert keys.isfinite().all()
    assert values.isfinite().all()


def test_rows_of_unequal_length_write_at_their_own_end() -> None:
    cache = make_cache()
    cache.crop([3, 1])
    keys, _ = cache.append("self", torch.tensor([70.0, 80.0]).reshape(2, 1, 1, 1), torch.zeros(2, 1, 1, 1))
    assert keys[0, 0, :, 0].tolist() == [0, 1, 2, 70]
    assert keys[1, 0, :2, 0].tolist() == [3, 80]


def test_reorder_may_repeat_drop_and_move_rows() -> None:
    cache = make_cache()
    cache.store_memory("cross", torch.tensor([10.0, 20.0]).reshape(2, 1, 1, 1), torch.zeros(2, 1, 1, 1))
    cache.crop([3, 2])
    cache.reorder(torch.tensor([1, 1, 0]))
    assert cache.lengths is not None
    assert cache.lengths == [2, 2, 3]
    assert cache.memory("cross")[0].flatten().tolist() == [20, 20, 10]
    keys, values = cache.append("self", torch.full((3, 1, 1, 1), 9.0), torch.zeros(3, 1, 1, 1))
    assert keys[0, 0, :3, 0].tolist() == [3, 4, 9]
    assert keys[2, 0, :4, 0].tolist() == [0, 1, 2, 9]
    assert values[1, 0, :2, 0].tolist() == [3.5, 4.5]


def test_rows_that_stay_are_not_touched_and_empty_room_is_not_copied() -> None:
    cache = make_cache(rows=4, capacity=6)
    keys, values = cache._buffers["self"]
    keys[:, :, 3:] = values[:, :, 3:] = 7.0
    before = keys.data_ptr()
    cache.reorder(torch.tensor([0, 3, 3]))  # a row takes the place of another, one stays, one leaves
    keys, values = cache.append("self", torch.full((3, 1, 1, 1), 9.0), torch.zeros(3, 1, 1, 1))
    assert keys.data_ptr() == before
    assert keys[:, 0, :, 0].tolist() == [[0, 1, 2, 9], [9, 10, 11, 9], [9, 10, 11, 9]]
    assert values[1, 0, :3, 0].tolist() == [9.5, 10.5, 11.5]
    buffer, _ = cache._buffers["self"]
    assert buffer[:3, 0, 4:].eq(7.0).all()  # unused capacity is untouched


def test_reorder_copies_what_differs_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []  # tokens of each copied row
    copy_rows = kv_cache._copy_rows

    def count(parts: Any) -> None:
        copied.extend(buffer.size(2) for (targets, _), buffer in parts for _ in targets)
        copy_rows(parts)

    monkeypatch.setattr(kv_cache, "_copy_rows", count)
    rng, token = random.Random(3), 0
    for _ in range(30):
        cache, expected = KVCache(12), torch.empty(4, 0)
        for length in range(1, 12):
            rows = expected.size(0)
            new = torch.arange(token, token + rows, dtype=torch.float32)[:, None]
            token, expected = token + rows, torch.cat((expected, new), dim=1)
            keys, _ = cache.append("self", new[:, None, :, None], new[:, None, :, None])
            assert torch.equal(keys[:, 0, :, 0], expected)
            cache.advance(1)
            if length == 6 and rng.random() < 0.3:
                cache.crop(length - 1)
                expected = expected[:, :-1]
            # Mostly neighbors, as in a beam search; sometimes any row; the last rows leave.
            index = [
                rng.randrange(rows) if rng.random() < 0.2 else min(row, max(0, row + rng.choice((-1, 0, 0))))
                for row in range(max(2, rows - (rng.random() < 0.2)))
            ]
            cache.reorder(torch.tensor(index))
            expected = expected[index]
    assert min(copied) < 3
    assert max(copied) == 11


def test_copies_of_a_short_row_continue_on_their_own() -> None:
    cache = make_cache()  # rows 0 1 2 and 3 4 5
    cache.crop([3, 1])
    cache.reorder(torch.tensor([0, 1, 1]))
    new = torch.tensor([6.0, 7.0, 8.0])[:, None, None, None]
    cache.append("self", new, new)
    cache.advance(1)
    cache.reorder(torch.tensor([0, 2, 1]))
    keys, _ = cache.append("self", new, new)
    assert [row[:length].tolist() for row, length in zip(keys[:, 0, :, 0], (4, 2, 2), strict=True)] == [
        [0.0, 1.0, 2.0, 6.0],
        [3.0, 8.0],
        [3.0, 7.0],
    ]


def test_rows_of_one_sentence_share_its_memory() -> None:
    cache = make_cache(rows=2)
    cache.store_memory("cross", torch.tensor([10.0, 20.0]).reshape(2, 1, 1, 1), torch.zeros(2, 1, 1, 1))
    assert cache.reorder(torch.tensor([0, 0, 0, 1, 1, 1])) is None  # beams: the memory stays as it is
    assert cache.rows_per_memory == 3
    assert cache.memory("cross")[0].flatten().tolist() == [10, 20]
    assert cache.reorder(torch.tensor([2, 0, 1, 5, 5, 3])) is None  # they move among themselves
    kept_rows = cache.reorder(torch.tensor([3, 4, 5]))  # the first sentence leaves
    assert kept_rows is not None
    assert kept_rows.tolist() == [1]
    assert (cache.rows_per_memory, cache.memory("cross")[0].flatten().tolist()) == (3, [20])
    assert cache.bytes == 2 * 6 * 6 * 4 + 2 * 4  # buffers of six rows of six tokens, and one memory
    cache.reorder(torch.tensor([1]))
    assert (cache.rows_per_memory, cache.rows) == (1, 1)


def test_rows_in_no_order_have_a_memory_each() -> None:
    cache = make_cache(rows=3)
    cache.store_memory("cross", torch.tensor([10.0, 20.0, 30.0]).reshape(3, 1, 1, 1), torch.zeros(3, 1, 1, 1))
    cache.reorder(torch.tensor([0, 0, 1, 2, 2]))
    assert (cache.rows_per_memory, cache.memory("cross")[0].flatten().tolist()) == (1, [10, 10, 20, 30, 30])
    cache.reorder(torch.tensor([0, 1, 3, 4]))
    assert (cache.rows_per_memory, cache.memory("cross")[0].flatten().tolist()) == (1, [10, 10, 30, 30])
