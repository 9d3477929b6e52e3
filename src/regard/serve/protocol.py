"""Connection deadlines and limits: uvicorn's HTTP protocol with timers and a header limit.

Uvicorn closes idle connections, but waits indefinitely for the rest of a partial request (150 of 150 half-open
connections were still open after 25 seconds), for a client that does not read its response, and after a line break
between two requests. It also accepts headers of any size. Middleware cannot prevent this, because it runs after the
headers are complete.

Pipelined requests are not supported. Uvicorn would queue them and stop reading, so it would not notice a disconnect and
would cancel only the last one. A connection handles one request at a time; further data is dropped, and the connection
is closed after the response, which tells clients to resend the rest (RFC 9112).
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regard.serve.disconnect import DISCONNECT, Receive, Scope, Send
from regard.serve.errors import send_error

MAX_HEADER_BYTES = 64 * 1024
MIN_BYTES_PER_SECOND = 1000  # that a client must read of its answer


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of a connection."""

    header_seconds: float
    """Seconds for the headers of a request."""
    body_seconds: float
    """Seconds for the body, and between checks of a client that reads its response slowly."""
    message_bytes: int
    """Maximum bytes of a request on the wire, including chunk sizes and trailers."""
    media_bytes: Mapping[bytes, int]
    """The same for each path that takes images or audio clips."""
    connections: int
    """Maximum number of connections; requests on further connections get a 503 response."""


async def answer_overload(scope: Scope, _receive: Receive, send: Send) -> None:
    """Reject a request because there are too many connections."""
    headers = [(b"retry-after", b"1"), (b"connection", b"close")]
    await send_error(scope, send, 503, "Too many connections.", headers)


async def answer_full_queue(scope: Scope, _receive: Receive, send: Send) -> None:
    """Reject a request because the queue is full."""
    await send_error(scope, send, 429, "The queue is full.", [(b"retry-after", b"1")])


def make_protocol(
    limits: ConnectionLimits, is_queue_full: Callable[[bytes], bool] = lambda _: False
) -> type[HttpToolsProtocol]:
    """Return a protocol class that closes connections whose request or response is too slow.

    Args:
        limits: The connection limits.
        is_queue_full: Returns whether the queue for a path is full. Such requests are rejected here, before reading
            their key and body, so an overloaded server spends little time on them.
    """
    return cast("type[HttpToolsProtocol]", partial(_LimitedProtocol, limits, is_queue_full))


class _LimitedProtocol(HttpToolsProtocol):
    _timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _message_bytes = 0
    _max_bytes = MAX_HEADER_BYTES
    _is_pipelined = False

    def __init__(self, limits: ConnectionLimits, is_queue_full: Callable[[bytes], bool], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._limits, self._is_queue_full = limits, is_queue_full

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm(self._limits.header_seconds)  # also closes a connection that never sends data

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self.resume_writing()
        is_answering = self._is_answering
        super().connection_lost(exc)
        if is_answering:
            extensions: Any = self.cycle.scope["extensions"]
            for leave in extensions[DISCONNECT]:
                leave()

    def data_received(self, data: bytes) -> None:
        self._message_bytes += len(data)
        if not self._is_pipelined:
            super().data_received(data)
        if self.transport.is_closing():
            return
        if self._message_bytes > self._max_bytes:
            self._abort()
        elif self._timer is None and self.timeout_keep_alive_task is None and not self._is_answering:
            self._arm(self._limits.header_seconds)  # line breaks between two requests

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._is_answering:
            self._is_pipelined, self.cycle.keep_alive = True, False
            return
        self.scope["extensions"] = {DISCONNECT: []}  # type: ignore[dict-item]
        self._max_bytes = MAX_HEADER_BYTES
        if self._timer is None:
            self._arm(self._limits.header_seconds)

    def on_headers_complete(self) -> None:
        if self._is_pipelined:
            return
        path = self.url.partition(b"?")[0]
        self._max_bytes = self._limits.media_bytes.get(path, self._limits.message_bytes)
        self._arm(self._limits.body_seconds)
        self.app = self.config.loaded_app
        if len(self.connections) > self._limits.connections:
            self.app = answer_overload
        elif self._is_queue_full(path):
            self.app = answer_full_queue
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Reject a request immediately; as a task it would wait for all earlier requests."""
        if app is not answer_full_queue or self.flow.write_paused:
            super()._start_asgi_task(cycle, app)
            return
        with suppress(StopIteration):
            cycle.run_asgi(app).send(None)  # it never waits

    def on_body(self, body: bytes) -> None:
        if not self._is_pipelined:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_pipelined:
            return
        self._disarm()
        self._message_bytes, self._max_bytes = 0, MAX_HEADER_BYTES
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    @property
    def _is_answering(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self._abort)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch_writing(self, last_size: int | None = None) -> None:
        """Close the connection of a client that does not read its response."""
        size = self.transport.get_write_buffer_size()
        if last_size is not None and last_size - size < MIN_BYTES_PER_SECOND * self._limits.body_seconds:
            self._abort()
        else:
            self._write_timer = self.loop.call_later(self._limits.body_seconds, self._watch_writing, size)

    def _abort(self) -> None:
        self._disarm()
        transport: Any = self.transport
        transport.abort()
