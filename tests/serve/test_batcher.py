"""Which requests share a batch, who waits, who is refused, and what is left when clients leave."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.serve.batcher import Batcher, BatchStats, DeadlineError, QueueFullError, StoppedError
from tests.serve.factories import Model, run, running, submit


def test_requests_with_equal_options_share_a_batch_within_the_token_budget() -> None:
    async def test() -> None:
        model = Model(0.05)
        async with running(model) as batcher:
            first = submit(batcher, "first")
            await asyncio.sleep(0.02)  # the worker is busy: the next ones wait together
            tasks = [submit(batcher, f"a{n}", "a", tokens=20) for n in range(6)] + [submit(batcher, "b", "b")]
            assert await asyncio.gather(first, *tasks) == ["FIRST", *(f"A{n}" for n in range(6)), "B"]
        assert [len(items) for _, items in model.batches] == [1, 5, 1, 1]  # 5 x 20 tokens fill the budget of 100
        assert [key for key, _ in model.batches] == ["k", "a", "a", "b"]  # the oldest request decides
        assert len(model.threads) == 1

    run(test)


def test_a_long_request_runs_alone_and_does_not_starve() -> None:
    async def test() -> None:
        model = Model(0.02)
        async with running(model) as batcher:
            first = submit(batcher, "first")
            await asyncio.sleep(0.01)
            long, short = submit(batcher, "long", tokens=500), submit(batcher, "short")
            await asyncio.gather(first, long, short)
        assert [items for _, items in model.batches] == [["first"], ["long"], ["short"]]

    run(test)


def test_a_closed_loop_of_clients_falls_into_full_batches_with_a_window() -> None:
    async def measure(window: float) -> list[int]:
        model = Model(0.005)

        async def client(batcher: Batcher[str, str], number: int) -> None:
            for _ in range(6):
                await batcher.submit("k", str(number), tokens=1, timeout=10)
                await asyncio.sleep(0.001)

        async with running(model, window=window) as batcher:
            await asyncio.gather(*(client(batcher, number) for number in range(8)))
        return [len(items) for _, items in model.batches]

    async def test() -> None:
        sizes = await measure(window=0.2)
        assert sizes.count(8) >= 5  # all clients together, except at the beginning

    run(test)


def test_the_window_starts_again_with_each_request() -> None:
    """A server needs longer to send the answers of a large batch and to read the next requests than one should wait."""

    async def test() -> None:
        model, clients, window = Model(0.005), 6, 0.6  # a busy machine may pause for tenths of a second

        async def client(batcher: Batcher[str, str], number: int) -> None:
            for _ in range(3):
                await batcher.submit("k", str(number), tokens=1, timeout=10)
                await asyncio.sleep(0.15 * number)  # the last one comes after more than a window

        async with running(model, window=window) as batcher:
            await asyncio.gather(*(client(batcher, number) for number in range(clients)))
        assert [len(items) for _, items in model.batches][:3] == [clients] * 3

    run(test)


def test_a_window_without_requests_ends() -> None:
    async def test() -> None:
        async with running(Model(), window=0.05) as batcher:
            await asyncio.gather(submit(batcher, "a"), submit(batcher, "b"))
            start = time.perf_counter()
            await batcher.submit("k", "x", tokens=1, timeout=10)  # the other client does not come back
            assert 0.02 < time.perf_counter() - start < 1
            await asyncio.sleep(0.1)
            assert not batcher._expected  # an idle request does not wait

    run(test)


def test_an_idle_request_never_waits_for_the_window() -> None:
    async def test() -> None:
        async with running(Model(), window=5.0) as batcher:
            for _ in range(3):
                start = time.perf_counter()
                await batcher.submit("k", "x", tokens=1, timeout=10)
                assert time.perf_counter() - start < 1

    run(test)


def test_errors_reach_their_request_only() -> None:
    async def test() -> None:
        async with running(Model(0.02)) as batcher:
            first = submit(batcher, "first")
            await asyncio.sleep(0.01)
            results = await asyncio.gather(
                first, submit(batcher, "bad"), submit(batcher, "good"), return_exceptions=True
            )
        assert results[0] == "FIRST"
        assert isinstance(results[1], ValueError)
        assert results[2] == "GOOD"

    run(test)


def test_a_failing_batch_fails_all_its_requests_and_the_next_batch_runs() -> None:
    async def test() -> None:
        model = Model()
        async with running(model) as batcher:
            model.seconds = -1.0  # time.sleep raises
            with pytest.raises(ValueError, match="non-negative"):
                await batcher.submit("k", "x", tokens=1, timeout=10)
            model.seconds = 0.0
            assert await batcher.submit("k", "x", tokens=1, timeout=10) == "X"

    run(test)


def test_a_full_queue_refuses_and_late_requests_are_not_started() -> None:
    async def test() -> None:
        model = Model(0.1)
        async with running(model, max_waiting=2, max_requests=1) as batcher:
            first = submit(batcher, "first")
            await asyncio.sleep(0.02)
            late = asyncio.ensure_future(batcher.submit("k", "late", tokens=1, timeout=0.01))
            waiting = submit(batcher, "waiting")
            await asyncio.sleep(0)
            with pytest.raises(QueueFullError):
                await batcher.submit("k", "refused", tokens=1, timeout=10)
            assert list(await asyncio.gather(first, waiting)) == ["FIRST", "WAITING"]
            with pytest.raises(DeadlineError):
                await late
        assert [items for _, items in model.batches] == [["first"], ["waiting"]]

    run(test)


def test_a_client_that_leaves_is_dropped_from_the_queue() -> None:
    async def test() -> None:
        model = Model(0.05)
        async with running(model) as batcher:
            first = submit(batcher, "first")
            await asyncio.sleep(0.02)
            left, stays = submit(batcher, "left"), submit(batcher, "stays")
            await asyncio.sleep(0)
            left.cancel()
            assert list(await asyncio.gather(first, stays)) == ["FIRST", "STAYS"]
        assert [items for _, items in model.batches] == [["first"], ["stays"]]

    run(test)


def test_a_stop_finishes_what_was_accepted_and_refuses_the_rest() -> None:
    async def test() -> None:
        async with running(Model(0.02), max_requests=2) as batcher:
            tasks = [submit(batcher, f"x{n}") for n in range(6)]
            await asyncio.sleep(0.01)
            stop = asyncio.ensure_future(batcher.stop())
            await asyncio.sleep(0)
            with pytest.raises(StoppedError):
                await batcher.submit("k", "new", tokens=1, timeout=10)
            assert await asyncio.gather(*tasks) == [f"X{n}" for n in range(6)]
            await stop

    run(test)


def test_streams_share_the_worker_and_close_their_iterator() -> None:
    async def test() -> None:
        closed = threading.Event()

        def parts() -> Iterator[str]:
            try:
                for number in range(1000):
                    yield str(number)
            finally:
                closed.set()

        async with running(Model()) as batcher:
            seen = []
            stream = batcher.stream(parts)
            async for part in stream:
                seen.append(part)
                if len(seen) == 3:
                    break
            assert batcher.running == 1
            await stream.aclose()  # type: ignore[attr-defined]
            assert batcher.running == 0
            assert await batcher.submit("k", "x", tokens=1, timeout=10) == "X"
            assert closed.wait(5)
        assert seen == ["0", "1", "2"]

    run(test)


def test_batches_are_observed() -> None:
    async def test() -> None:
        stats: list[BatchStats] = []
        async with running(Model(0.01), observe=stats.append) as batcher:
            await asyncio.gather(submit(batcher, "a", tokens=3), submit(batcher, "b", tokens=4))
        assert sum(batch.requests for batch in stats) == 2
        assert sum(batch.tokens for batch in stats) == 7
        assert all(seconds >= 0 for batch in stats for seconds in batch.queue_seconds)

    run(test)


def test_one_bad_item_does_not_fail_its_batch() -> None:
    class Strict(Model):
        def __call__(self, key: object, items: list[str]) -> list[str | Exception]:
            self.batches.append((key, items))
            time.sleep(0.02)
            if "bad" in items:
                raise RegardError("bad")
            return list[str | Exception](items)

    async def test() -> None:
        model = Strict()
        async with running(model) as batcher:
            first = submit(batcher, "first")
            await asyncio.sleep(0.01)
            tasks = [submit(batcher, item) for item in ("good", "bad", "better")]
            results = await asyncio.gather(first, *tasks, return_exceptions=True)
        assert results[:2] == ["first", "good"]
        assert isinstance(results[2], RegardError)
        assert results[3] == "better"

    run(test)


def test_a_deadline_is_kept_while_a_batch_runs() -> None:
    async def test() -> None:
        async with running(Model(0.5)) as batcher:
            first = submit(batcher, "first")
            await asyncio.sleep(0.01)
            begin = time.perf_counter()
            with pytest.raises(DeadlineError):
                await batcher.submit("k", "late", tokens=1, timeout=0.05)
            assert time.perf_counter() - begin < 0.3
            assert batcher.waiting == 0
            assert await first == "FIRST"

    run(test)


def test_calls_are_bounded_as_requests_are() -> None:
    async def test() -> None:
        batcher: Batcher[str, str] = Batcher(Model(), max_tokens=9, max_requests=1, max_waiting=2, window=0)
        batcher.start()
        calls = [asyncio.ensure_future(batcher.call(lambda: time.sleep(0.05))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await batcher.call(lambda: None)
        await asyncio.gather(*calls)
        await batcher.call(lambda: None)
        await batcher.stop()

    run(test)


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
        first = submit_gated(batcher, "first")
        assert await asyncio.to_thread(model.started.wait, SAFETY_SECONDS)
        yield batcher
        model.gate.set()
        assert await first == "FIRST"
    finally:
        model.gate.set()
        await batcher.stop()


def submit_gated(batcher: Batcher[str, str], item: str, tokens: int = 1, timeout: float = 1000) -> "asyncio.Task[str]":
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
            tasks = [submit_gated(batcher, item, tokens) for item, tokens in sizes.items()]
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
            late = submit_gated(batcher, "late")
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
            stays = submit_gated(batcher, "stays")  # would be refused if the queue were full
            await asyncio.sleep(0)
            model.gate.set()
            assert await stays == "STAYS"

    asyncio.run(run())
    assert model.batches == [["first"], ["stays"]]
