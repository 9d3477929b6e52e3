"""Cancels the requests of disconnected clients."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
DISCONNECT = "regard.disconnect"
"""Scope extension: functions that the server calls when the client disconnects (`regard.serve.protocol`)."""


async def cancel_on_disconnect(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Call an application, and cancel the call if the client disconnects after sending its body.

    Frameworks report disconnects only when polled; otherwise abandoned requests stay queued. A server with the
    extension `DISCONNECT` calls back; other servers need a polling task per request, which is slower.
    """
    callbacks: list[Callable[[], object]] | None = scope.get("extensions", {}).get(DISCONNECT)
    if callbacks is None:
        await _ask_for_disconnect(app, scope, receive, send)
        return
    task, has_left = asyncio.current_task(), False

    def leave() -> None:
        nonlocal has_left
        if task is not None:
            has_left = True
            task.cancel()

    callbacks.append(leave)
    try:
        await app(scope, receive, send)
    except asyncio.CancelledError:
        if not has_left or task is None or task.uncancel() > 0:
            raise  # cancelled by somebody else, for example at the end of the server


async def _ask_for_disconnect(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    task, watcher = asyncio.current_task(), None
    has_left = has_answered = False
    left = asyncio.Event()

    async def watch() -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()
        if not has_answered and task is not None:  # servers also report a complete response as a disconnect
            has_left = True
            task.cancel()

    async def watched_receive() -> Message:
        nonlocal watcher
        if watcher is not None:
            await left.wait()
            return {"type": "http.disconnect"}
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            watcher = asyncio.get_running_loop().create_task(watch())
        return message

    async def watched_send(message: Message) -> None:
        nonlocal has_answered
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            has_answered = True
        await send(message)

    try:
        await app(scope, watched_receive, watched_send)
    except asyncio.CancelledError:
        if not has_left or task is None or task.uncancel() > 0:
            raise  # cancelled by somebody else, for example at the end of the server
    finally:
        if watcher is not None:
            watcher.cancel()
