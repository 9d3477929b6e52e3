"""Deadlines and limits of a connection: uvicorn's HTTP protocol with timers and a limit on headers.

Uvicorn closes idle connections, but it waits for ever for the rest of a request that has begun (150 of 150 half-open
connections were still there after 25 seconds), for a client that does not read its answer, and after a line break
between two requests. It also keeps headers of any size. Middleware cannot help: it runs once the headers are complete.

Pipelined requests are not answered. Uvicorn would queue them and stop reading, so that it would not notice that the
client has left, and would cancel only the last one. A connection has one request at a time; what a client sends behind
it is dropped, and the connection is closed after the response, which tells clients to send the rest again (RFC 9112).
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regard.serve.disconnect import DISCONNECT, Receive, Scope, Send
from regard.serve.errors import send_error

MAX_HEADER_BYTES = 64 * 1024
MIN_BYTES_PER_SECOND = 1000  # that a client must read of its answer


@dataclass(frozen=True)
class ConnectionLimits:
    """What a connection may take."""

    header_seconds: float
    """Seconds for the headers of a request."""
    body_seconds: float
    """Seconds for its body, and between two looks at a client that reads its answer slowly."""
    message_bytes: int
    """Bytes of a request as it arrives, with chunk sizes and trailers."""
    media_bytes: Mapping[bytes, int]
    """The same for each path that takes images or audio clips: no other request may fill as much memory."""
    connections: int
    """Connections; requests on more of them are answered with 503."""


async def answer_overload(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer a request of a connection too many."""
    headers = [(b"retry-after", b"1"), (b"connection", b"close")]
    await send_error(scope, send, 503, "Too many connections.", headers)


async def answer_full_queue(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer a request that finds the queue full."""
    await send_error(scope, send, 429, "The queue is full.", [(b"retry-after", b"1")])


def make_protocol(
    limits: ConnectionLimits, is_queue_full: Callable[[bytes], bool] = lambda _: False
) -> type[HttpToolsProtocol]:
    """Return a protocol class that closes connections whose request arrives, or whose answer leaves, too slowly.

    Args:
        limits: What a connection may take.
        refuse_early: Returns whether requests to a path find the queue full. They are answered here, before their key
            and their body are read: an overloaded server must not spend its time on requests that it will not answer.
    """

    class LimitedProtocol(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _write_timer: asyncio.TimerHandle | None = None
        _message_bytes = 0
        _max_bytes = MAX_HEADER_BYTES
        _is_pipelined = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._arm(limits.header_seconds)  # a connection that sends nothing is closed, too

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
                self._arm(limits.header_seconds)  # line breaks between two requests

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._is_answering:
                self._is_pipelined, self.cycle.keep_alive = True, False
                return
            self.scope["extensions"] = {DISCONNECT: []}  # type: ignore[dict-item]
            self._max_bytes = MAX_HEADER_BYTES
            if self._timer is None:
                self._arm(limits.header_seconds)

        def on_headers_complete(self) -> None:
            if self._is_pipelined:
                return
            path = self.url.partition(b"?")[0]
            self._max_bytes = limits.media_bytes.get(path, limits.message_bytes)
            self._arm(limits.body_seconds)
            self.app = self.config.loaded_app
            if len(self.connections) > limits.connections:
                self.app = answer_overload
            elif is_queue_full(path):
                self.app = answer_full_queue
            super().on_headers_complete()

        def _start_asgi_task(self, cycle: Any, app: Any) -> None:
            """Answer a refused request at once: as a task it would wait for those of all requests before it."""
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
            """Close the connection of a client that does not read its answer."""
            size = self.transport.get_write_buffer_size()
            if last_size is not None and last_size - size < MIN_BYTES_PER_SECOND * limits.body_seconds:
                self._abort()
            else:
                self._write_timer = self.loop.call_later(limits.body_seconds, self._watch_writing, size)

        def _abort(self) -> None:
            self._disarm()
            transport: Any = self.transport
            transport.abort()

    return LimitedProtocol
