"""A small HTTP client that sends any bytes: for load, and for requests that no library would send."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = TypeVar("Value")
Result = TypeVar("Result")
ADDRESS = "127.0.0.1"
TIMEOUT = 3000.0  # seconds: a busy machine may stop a test for minutes
NO_ANSWER = 0  # the status of a connection that was closed without an answer


@dataclass(frozen=True)
class Answer:
    """An answer, or how a connection ended."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0

    def json(self) -> Any:
        return json.loads(self.body)


def make_request(
    method: str, path: str, body: bytes | None = None, kind: str = "application/json", *headers: str
) -> bytes:
    """Return the bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers]
    if body is not None:
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def post(path: str, content: Any, *headers: str) -> bytes:
    """Return the bytes of a request with a JSON body."""
    return make_request("POST", path, json.dumps(content).encode(), "application/json", *headers)


def get(path: str, *headers: str) -> bytes:
    return make_request("GET", path, None, "", *headers)


class Connection:
    """A connection that is kept open between requests, and opened again when the server has closed it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, request: bytes, timeout: float = TIMEOUT) -> Answer:
        """Send a request and return its answer; status 0 if the connection ends without one."""
        start = time.perf_counter()
        try:
            async with asyncio.timeout(timeout):
                if self._writer is None or self._writer.is_closing():
                    self._reader, self._writer = await asyncio.open_connection(ADDRESS, self.port, limit=2**24)
                assert self._reader is not None
                self._writer.write(request)
                status, headers = await read_head(self._reader)
                body = await read_body(self._reader, status, headers, is_head=request.startswith(b"HEAD"))
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            await self.close()
            return Answer(NO_ANSWER, seconds=time.perf_counter() - start)
        if headers.get("connection", "").lower() == "close":
            await self.close()
        return Answer(status, headers, body, time.perf_counter() - start)

    async def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Read the status and headers of an answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    status = int(head[0].split(" ")[1])
    return await read_head(reader) if status == 100 else (status, headers)


async def read_body(reader: asyncio.StreamReader, status: int, headers: dict[str, str], *, is_head: bool) -> bytes:
    if is_head or status in (204, 304):
        return b""
    if headers.get("transfer-encoding") == "chunked":
        parts = []
        while size := int(await reader.readuntil(b"\r\n"), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readuntil(b"\r\n")
        return b"".join(parts)
    return await reader.readexactly(int(headers["content-length"]))


async def ask(port: int, request: bytes, timeout: float = TIMEOUT) -> Answer:
    """Send one request on its own connection."""
    connection = Connection(port)
    try:
        return await connection.ask(request, timeout)
    finally:
        await connection.close()


async def ask_all(port: int, requests: Iterable[bytes], clients: int) -> list[tuple[bytes, Answer]]:
    """Send requests from several clients, each of which waits for its answer; return requests with their answers."""
    waiting, answers = iter(requests), list[tuple[bytes, Answer]]()

    async def run() -> None:
        connection = Connection(port)
        for request in waiting:
            answers.append((request, await connection.ask(request)))
        await connection.close()

    await asyncio.gather(*(run() for _ in range(clients)))
    return answers


async def repeat(clients: int, work: Callable[[Value], Awaitable[Result]], values: Iterable[Value]) -> list[Result]:
    """Call a function with each value, from several tasks at a time."""
    waiting, results = iter(values), list[Result]()

    async def run() -> None:
        for value in waiting:
            results.append(await work(value))

    await asyncio.gather(*(run() for _ in range(clients)))
    return results
