"""The batcher's queue while a batch runs: a gate holds the worker, so that no test depends on timing."""

import asyncio
import threading
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from regard.serve.batcher import Batcher, DeadlineError

SAFETY_SECONDS = 30  # a broken batcher fails a test instead of blocking it


class GatedModel:
    """A model whose batches wait at a gate."""

    def __init__(self) -> None:
        self.batches, self.started, self.gate = list[list[str]](), threading.Event(), threading.Event()

    def __call__(self, _key: Hashable, items: list[str]) -> list[str]:
        self.batches.append(items)
        self.started.set()
        assert self.gate.wait(SAFETY_SECONDS)
        return [item.upper() for item in items]


@asynccontextmanager
async def busy(model: GatedModel, **changes: Any) -> AsyncIterator[Batcher[str, str]]:
    """Yield a batcher whose worker runs a batch, ["first"], until the gate opens."""
    settings: dict[str, Any] = {"max_tokens": 100, "max_requests": 8, "max_waiting": 50, "window": 0.0} | changes
    batcher: Batcher[str, str] = Batcher(model, **settings)
    batcher.start()
    try:
        first = submit(batcher, "first")
        assert await asyncio.to_thread(model.started.wait, SAFETY_SECONDS)
        yield batcher
        model.gate.set()
        assert await first == "FIRST"
    finally:
        model.gate.set()
        await batcher.stop()


def submit(batcher: Batcher[str, str], item: str, tokens: int = 1, timeout: float = 1000) -> "asyncio.Task[str]":
    return asyncio.ensure_future(batcher.submit("k", item, tokens=tokens, timeout=timeout))


async def wait_until_queued(batcher: Batcher[str, str], count: int) -> None:
    """Give way to other tasks until this many items wait."""
    for _ in range(1000):
        if batcher.waiting == count:
            return
        await asyncio.sleep(0)
    pytest.fail(f"{batcher.waiting} items wait, not {count}")


def run_batches(sizes: dict[str, int], **changes: Any) -> list[list[str]]:
    """Queue items of these numbers of tokens while the worker is busy, and return the batches that they became."""
    model = GatedModel()

    async def run() -> None:
        async with busy(model, **changes) as batcher:
            tasks = [submit(batcher, item, tokens) for item, tokens in sizes.items()]
            await wait_until_queued(batcher, len(tasks))
            model.gate.set()
            assert await asyncio.gather(*tasks) == [item.upper() for item in sizes]

    asyncio.run(run())
    return model.batches[1:]


def test_batch_has_at_most_max_requests_items() -> None:
    assert run_batches({"a": 1, "b": 1, "c": 1}, max_requests=2) == [["a", "b"], ["c"]]


def test_batch_budget_counts_padding_of_shorter_items() -> None:
    assert run_batches({"a": 10, "b": 10, "c": 60}) == [["a", "b"], ["c"]]  # 80 tokens, but 180 with padding
    assert run_batches({"c": 60, "a": 10, "b": 10}) == [["c"], ["a", "b"]]


def test_deadline_fails_waiting_requests_and_not_running_ones() -> None:
    model = GatedModel()

    async def run() -> None:
        loop, offset = asyncio.get_running_loop(), 0.0
        clock = loop.time
        loop.time = lambda: clock() + offset  # type: ignore[method-assign]
        async with busy(model) as batcher:  # "first" runs
            late = submit(batcher, "late")
            await wait_until_queued(batcher, 1)
            offset = 2000.0  # later than both deadlines
            with pytest.raises(DeadlineError):
                await late

    asyncio.run(run())
    assert model.batches == [["first"]]


def test_cancelled_request_frees_its_places_in_the_queue() -> None:
    model = GatedModel()

    async def run() -> None:
        async with busy(model, max_waiting=2) as batcher:
            left = asyncio.ensure_future(batcher.submit_all("k", ["a", "b"], tokens=[1, 1], timeout=1000))
            await wait_until_queued(batcher, 2)
            assert batcher.free == 0
            left.cancel()
            with pytest.raises(asyncio.CancelledError):
                await left
            assert (batcher.waiting, batcher.free) == (0, 2)
            stays = submit(batcher, "stays")  # would be refused if the queue were full
            await asyncio.sleep(0)
            model.gate.set()
            assert await stays == "STAYS"

    asyncio.run(run())
    assert model.batches == [["first"], ["stays"]]
