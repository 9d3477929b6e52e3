"""Error responses in each protocol's format."""

import json
from collections.abc import Sequence
from typing import Any

from regard.serve.disconnect import Scope, Send

LIBRETRANSLATE_ROUTES = frozenset(
    {"/translate", "/translate_file", "/detect", "/languages", "/suggest", "/frontend/settings"}
)


def make_error(path: str, text: str, status: int, param: str | None = None) -> dict[str, Any]:
    """Return the body of an error: a string for LibreTranslate routes, an OpenAI-style object for all others.

    >>> make_error("/translate", "The queue is full.", 429)
    {'error': 'The queue is full.'}
    >>> make_error("/v1/completions", "The queue is full.", 429)["error"]["type"]
    'invalid_request_error'
    """
    if path in LIBRETRANSLATE_ROUTES:
        return {"error": text}
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": text, "type": kind, "param": param, "code": status}}


def describe_faults(faults: Sequence[Any], skipped: int = 0) -> str:
    """Describe the first validation errors found by pydantic, without the `skipped` parts of names."""
    lines = []
    for fault in faults[:5]:
        name, message = ".".join(map(str, fault["loc"][skipped:])), fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "json_invalid":
            name, message = "", f"The body is not valid JSON: {fault.get('ctx', {}).get('error', message)}"
        lines.append(f"{name}: {message}" if name else message)
    return "; ".join(lines)


async def send_error(
    scope: Scope, send: Send, status: int, text: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Send an error without a framework."""
    body = json.dumps(make_error(scope.get("path", ""), text, status)).encode()
    content = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*content, *headers]})
    await send({"type": "http.response.body", "body": body})
