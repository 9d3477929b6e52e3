"""Server-sent events: `data: {...}` lines that end in `data: [DONE]`; stop strings that may cross two parts."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx must not collect the events
DONE = "data: [DONE]\n\n"


def to_event(content: Mapping[str, Any]) -> str:
    """Return one event."""
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"


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
