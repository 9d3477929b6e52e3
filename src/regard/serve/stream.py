"""Server-sent events: `data: {...}` lines that end with `data: [DONE]`, and stop strings across chunks."""

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from fastapi import HTTPException
from fastapi.responses import StreamingResponse

from regard.serve.disconnect import Receive, Scope, Send
from regard.serve.errors import make_error
from regard.serve.state import http_errors

SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # disables nginx buffering
DONE = "data: [DONE]\n\n"
logger = logging.getLogger("regard.serve")
Events = AsyncGenerator[str, None]


def to_event(content: Mapping[str, Any]) -> str:
    """Return one event."""
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"


class EventResponse(StreamingResponse):
    """A stream of events that always closes its generator, even if the client disconnects before it starts."""

    def __init__(self, first: str, events: Events, path: str) -> None:
        self._all_events = _join_events(first, events, path)
        super().__init__(self._all_events, media_type="text/event-stream", headers=SSE_HEADERS)
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._all_events.aclose()
            await self._events.aclose()


async def respond_with_events(events: Events, path: str) -> EventResponse:
    """Respond with events. An error before the first event sets the status; a later error is sent as an event.

    Args:
        events: The events.
        path: The route, which determines the error format.

    Raises:
        HTTPException: An error before the first event.
    """
    try:
        first = await http_errors(anext(events))
    except BaseException:
        await events.aclose()
        raise
    return EventResponse(first, events, path)


async def _join_events(first: str, events: Events, path: str) -> Events:
    yield first
    try:
        while (event := await http_errors(anext(events, None))) is not None:
            yield event
    except HTTPException as error:
        yield to_event(make_error(path, str(error.detail), error.status_code))
        yield DONE
    except Exception:
        logger.exception("a stream failed")
        yield to_event(make_error(path, "The server failed.", 500))
        yield DONE


class StopStrings:
    """Truncates streamed text before the first stop string.

    >>> stop = StopStrings(["STOP"])
    >>> stop.push("one S"), stop.push("TO"), stop.push("P two"), stop.is_stopped
    ('one ', '', '', True)
    >>> stop = StopStrings(["STOP"])
    >>> stop.push("one S") + stop.push("top") + stop.finish()
    'one Stop'
    """

    def __init__(self, strings: list[str]) -> None:
        self._strings, self._held, self.is_stopped = strings, "", False

    def push(self, part: str) -> str:
        """Return the text that is safe to send; holds back a possible start of a stop string."""
        if self.is_stopped:
            return ""
        text = self._held + part
        positions = [position for string in self._strings if (position := text.find(string)) >= 0]
        if positions:
            self.is_stopped, self._held = True, ""
            return text[: min(positions)]
        held = max((_overlap(text, string) for string in self._strings), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def finish(self) -> str:
        """Return the text that was held back, at the end."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, string: str) -> int:
    """Return the length of the longest text suffix that is a prefix of the string."""
    return next((size for size in range(min(len(string) - 1, len(text)), 0, -1) if text.endswith(string[:size])), 0)


async def stop_at(parts: AsyncIterator[str], stop: StopStrings) -> AsyncIterator[str]:
    """Yield the parts of a text up to the first stop string."""
    async for part in parts:
        if safe := stop.push(part):
            yield safe
        if stop.is_stopped:
            return
    if rest := stop.finish():
        yield rest
