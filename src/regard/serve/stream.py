"""Server-sent events: `data: {...}` lines that end in `data: [DONE]`; stop strings that may cross two parts."""

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from fastapi import HTTPException
from fastapi.responses import StreamingResponse

from regard.serve.disconnect import Receive, Scope, Send
from regard.serve.errors import make_error
from regard.serve.state import http_errors

SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx must not collect the events
DONE = "data: [DONE]\n\n"
logger = logging.getLogger("regard.serve")
Events = AsyncGenerator[str, None]


def to_event(content: Mapping[str, Any]) -> str:
    """Return one event."""
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"


class EventResponse(StreamingResponse):
    """A stream of events; its generator is closed however the stream ends, also if the client leaves before it."""

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
    """Answer with events. An error before the first one gets its own status, a later one is an event.

    Args:
        events: The events.
        path: The route, which decides the form of errors.

    Raises:
        HTTPException: There is no first event.
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
    """Cuts a text before the first of some strings, while it arrives in parts.

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
        """Return the text that is safe to send: what may be the beginning of a stop string is held back."""
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
    """Return how many characters at the end of a text begin the string."""
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
