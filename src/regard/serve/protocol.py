"""Deadlines for slow clients: uvicorn's HTTP protocol with a timer for headers and body.

Uvicorn closes idle connections, but it waits for ever for the rest of a request that has begun (150 of 150 half-open
connections were still there after 25 seconds). Middleware cannot help: it runs once the headers are complete.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def make_protocol(header_seconds: float, body_seconds: float) -> type[HttpToolsProtocol]:
    """Return a protocol class that closes connections whose request takes too long to arrive."""

    class DeadlineProtocol(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._arm(header_seconds)  # a connection that sends nothing is closed, too

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._timer is None:
                self._arm(header_seconds)

        def on_headers_complete(self) -> None:
            self._arm(body_seconds)
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._disarm()
            super().on_message_complete()

        def _arm(self, seconds: float) -> None:
            self._disarm()
            self._timer = self.loop.call_later(seconds, self._expire)

        def _disarm(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _expire(self) -> None:
            self._timer = None
            transport: Any = self.transport
            transport.abort()

    return DeadlineProtocol
