"""Which requests share a batch, who waits, who is refused, and what is left when clients leave."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from regard.serve.batcher import Batcher, BatchStats, DeadlineError, QueueFullError, StoppedError


class Model:
    """A model that takes some time for each batch and remembers its batches and threads."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.batches, self.threads = seconds, list[tuple[Hashable, list[str]]](), set[int]()

    def __call__(self, key: Hashable, items: list[str]) -> list[str | Exception]:
        self.threads.add(threading.get_ident())
        self.batches.append((key, items))
        time.sleep(self.seconds)
        return [ValueError(item) if item == "bad" else item.upper() for item in items]


@asynccontextmanager
async def running(model: Model, **changes: Any) -> AsyncIterator[Batcher[str, str]]:
    settings: dict[str, Any] = {"max_tokens": 100, "max_requests": 8, "max_waiting": 50, "window": 0.0} | changes
    batcher: Batcher[str, str] = Batcher(model, **settings)
    batcher.start()
    try:
        yield batcher
    finally:
        async with asyncio.timeout(10):
            await batcher.stop()


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous test with a time limit."""

    async def limited() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(limited())


def submit(batcher: Batcher[str, str], item: str, key: str = "k", tokens: int = 1) -> "asyncio.Task[str]":
    return asyncio.ensure_future(batcher.submit(key, item, tokens=tokens, timeout=10))


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
