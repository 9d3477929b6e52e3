"""Request batching: one model, one worker thread, a bounded queue.

A batch contains requests with the same key (search, n_best, maximum length ...), because pipelines take these options
once per call. The oldest waiting request determines the key of the next batch, so no request starves; later requests
with the same key join within the token budget.

A request to an idle model starts immediately. After a batch, its clients often send their next request within
milliseconds, so the batcher waits for as many requests as the last batch had, until `window` seconds pass without a
response sent or a request received. Without this wait, 32 clients in a closed loop fall into batches of 1, 31, 1, 31.
The timer restarts with each event, because sending 32 responses and reading 32 requests takes longer than a single
request should wait.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")
STREAM_END = object()  # marks the end of a stream


class QueueFullError(Exception):
    """The queue is full; the client should retry later."""


class TooManyItemsError(Exception):
    """A request has more items than the queue's capacity."""


class DeadlineError(Exception):
    """The request did not start before its deadline."""


class StoppedError(Exception):
    """The batcher is stopping and does not accept requests."""


@dataclass(eq=False)
class _Waiting(Generic[Item, Result]):
    key: Hashable
    item: Item
    tokens: int
    arrival: float
    future: "asyncio.Future[Result]" = field(repr=False)
    has_started: bool = False


@dataclass(frozen=True)
class BatchStats:
    """Statistics of one batch, for metrics."""

    requests: int
    tokens: int
    queue_seconds: Sequence[float]  # of each request
    seconds: float


class Batcher(Generic[Item, Result]):
    """Runs requests in batches on one worker thread. Create it inside a running event loop, or call `start` there.

    Args:
        run: Called on the worker thread with the key and items of a batch; returns one result or exception per item.
        max_tokens: Token budget of a batch: number of items times the size of the largest. A larger item runs alone.
        max_requests: Maximum number of items in a batch.
        max_waiting: Maximum number of waiting items.
        window: Maximum seconds to wait, after a response or request, for the next client of the last batch.
        observe: Called in the event loop after each batch.
    """

    def __init__(
        self,
        run: Callable[[Hashable, list[Item]], Sequence[Result | Exception]],
        *,
        max_tokens: int,
        max_requests: int,
        max_waiting: int,
        window: float,
        observe: Callable[[BatchStats], None] = lambda _: None,
    ) -> None:
        self._run, self._observe = run, observe
        self._max_tokens, self._max_requests, self._max_waiting = max_tokens, max_requests, max_waiting
        self._window = window
        self._waiting: deque[_Waiting[Item, Result]] = deque()
        self._arrived = asyncio.Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._task: asyncio.Task[None] | None = None
        self._expected, self._last_event = 0, 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._streams = self._calls = 0
        self._running = 0
        self.is_stopping = False

    @property
    def waiting(self) -> int:
        """Number of waiting items."""
        return len(self._waiting)

    @property
    def free(self) -> int:
        """Free capacity for waiting items and for streams."""
        return self._max_waiting - max(len(self._waiting), self._streams + self._calls)

    @property
    def running(self) -> int:
        """Number of running items, open streams and calls."""
        return self._running + self._streams + self._calls

    def start(self) -> None:
        """Start the batching loop in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._loop())

    async def submit(self, key: Hashable, item: Item, *, tokens: int, timeout: float) -> Result:
        """Wait for the result of an item. If the caller is cancelled, a waiting item is dropped.

        Raises:
            QueueFullError: Too many items wait.
            DeadlineError: The item did not start within `timeout` seconds.
            StoppedError: The batcher is stopping.
        """
        results = await self.submit_all(key, [item], tokens=[tokens], timeout=timeout)
        return results[0]

    async def submit_all(
        self, key: Hashable, items: Sequence[Item], *, tokens: Sequence[int], timeout: float
    ) -> list[Result]:
        """Wait for the results of several items of one request; queues either all items or none."""
        if self.is_stopping:
            raise StoppedError
        if len(items) > self._max_waiting:
            raise TooManyItemsError
        if len(self._waiting) + len(items) > self._max_waiting:
            raise QueueFullError
        loop = asyncio.get_running_loop()
        now = loop.time()
        entries = [
            _Waiting(key, item, count, now, loop.create_future()) for item, count in zip(items, tokens, strict=True)
        ]
        self._waiting.extend(entries)
        self._last_event = now
        if len(self._waiting) >= self._expected:
            self._arrived.set()
        timer = loop.call_at(now + timeout, _expire, entries)
        try:
            if len(entries) == 1:
                return [await entries[0].future]
            return list(await asyncio.gather(*(entry.future for entry in entries)))
        except BaseException:
            for entry in entries:  # one failed item fails the whole request
                entry.future.cancel()
            self._waiting = deque(entry for entry in self._waiting if not entry.future.done())
            raise
        finally:
            timer.cancel()
            self._last_event = loop.time()

    async def call(self, function: Callable[[], Value]) -> Value:
        """Run a function on the worker thread between two batches.

        Raises:
            QueueFullError: Too many functions and streams share the worker.
            StoppedError: The batcher is stopping.
        """
        self._check_worker()
        self._calls += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, function)
        finally:
            self._calls -= 1

    def _check_worker(self) -> None:
        if self.is_stopping:
            raise StoppedError
        if self._streams + self._calls >= self._max_waiting:
            raise QueueFullError

    async def stream(self, start: Callable[[], Iterator[str]]) -> AsyncIterator[str]:
        """Yield the items of an iterator, each computed on the worker thread between batches.

        Closing this generator closes the iterator and stops the computation.

        Args:
            start: Creates the iterator, on the worker thread.
        """
        self._check_worker()
        self._streams += 1
        loop = asyncio.get_running_loop()
        parts: Iterator[str] | None = None
        try:
            parts = await loop.run_in_executor(self._worker, start)
            while (part := await loop.run_in_executor(self._worker, next, parts, STREAM_END)) is not STREAM_END:
                yield part  # type: ignore[misc]
        finally:
            self._streams -= 1
            if (close := getattr(parts, "close", None)) is not None:
                self._worker.submit(close)

    async def stop(self) -> None:
        """Stop accepting items, finish waiting ones, and end the worker thread."""
        self.is_stopping = True
        self._arrived.set()
        if self._task is not None:
            await self._task
        while self._streams or self._calls:
            await asyncio.sleep(0.01)
        self._worker.shutdown()

    async def _loop(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting and self.is_stopping:
                return
            if not self._waiting or (len(self._waiting) < self._expected and not self.is_stopping):
                self._arrived.clear()
                await self._arrived.wait()
                continue
            self._close_window()
            batch = self._take_batch()
            if not batch:
                continue
            self._running, start = len(batch), loop.time()
            results = await self._run_batch(batch)
            end = loop.time()
            self._running = 0
            for entry, result in zip(batch, results, strict=True):
                if entry.future.done():
                    continue  # the client disconnected
                if isinstance(result, Exception):
                    entry.future.set_exception(result)
                else:
                    entry.future.set_result(result)
            self._open_window(len(batch))
            queue_seconds = [start - entry.arrival for entry in batch]
            tokens = sum(entry.tokens for entry in batch)
            self._observe(BatchStats(len(batch), tokens, queue_seconds, end - start))

    async def _run_batch(self, batch: list[_Waiting[Item, Result]]) -> Sequence[Any]:
        """Return one result or exception per item; if a batch fails, its items are retried one by one."""
        items = [entry.item for entry in batch]
        try:
            results = await asyncio.get_running_loop().run_in_executor(self._worker, self._run, batch[0].key, items)
            if len(results) != len(items):
                raise RuntimeError(f"A batch of {len(items)} has {len(results)} results.")
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [result for entry in batch for result in await self._run_batch([entry])]
        return results

    def _open_window(self, size: int) -> None:
        """Expect new requests from the clients of a finished batch; `_loop` waits for as many."""
        if size > 1 and self._window > 0:
            loop = asyncio.get_running_loop()
            self._expected, self._last_event = size, loop.time()
            self._timer = loop.call_later(self._window, self._check_window)

    def _check_window(self) -> None:
        """Stop waiting if no request arrived within the window. The event loop runs all events before a timer."""
        loop = asyncio.get_running_loop()
        remaining = self._last_event + self._window - loop.time()
        if remaining > 0:
            self._timer = loop.call_later(remaining, self._check_window)
        else:
            self._close_window()
            self._arrived.set()

    def _close_window(self) -> None:
        self._expected = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _take_batch(self) -> list[_Waiting[Item, Result]]:
        """Remove the next batch from the queue, and all cancelled or expired items."""
        batch: list[_Waiting[Item, Result]] = []
        remaining_entries: deque[_Waiting[Item, Result]] = deque()
        max_entry_tokens = 0
        for entry in self._waiting:
            if entry.future.done():
                continue
            fits = not batch or (
                entry.key == batch[0].key
                and len(batch) < self._max_requests
                and max(max_entry_tokens, entry.tokens) * (len(batch) + 1) <= self._max_tokens
            )
            if fits:
                batch.append(entry)
                entry.has_started = True
                max_entry_tokens = max(max_entry_tokens, entry.tokens)
            else:
                remaining_entries.append(entry)
        self._waiting = remaining_entries
        return batch


def _expire(entries: Sequence[_Waiting[Any, Any]]) -> None:
    """Fail a request if some of its items have not started by the deadline."""
    for entry in entries:
        if not entry.has_started and not entry.future.done():
            entry.future.set_exception(DeadlineError())
