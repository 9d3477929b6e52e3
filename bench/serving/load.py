"""A closed loop of HTTP clients: each sends its next request when the answer to the last one is complete.

    python -m bench.serving.load < job.json     # {"port": 8000, "path": "/translate", "bodies": [...], "clients": 8}

One process, raw sockets, kept-alive connections, so that it stays cheap beside the server. It prints one line of JSON:
the seconds of all requests, the milliseconds of each one, and the number of answers with another status than 200.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

HEADER_END = b"\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class Client(asyncio.Protocol):
    """One connection that sends requests until there are none left."""

    def __init__(self, requests: Iterator[bytes], latencies: list[float], failures: list[bytes]) -> None:
        self.requests, self.latencies, self.failures = requests, latencies, failures
        self.done = asyncio.get_running_loop().create_future()
        self.buffer, self.start = b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self.transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Collect the answer; send the next request when it is complete."""
        self.buffer += data
        head, separator, body = self.buffer.partition(HEADER_END)
        if not separator or not _is_complete(head.lower(), body):
            return
        self.latencies.append(1000 * (time.perf_counter() - self.start))
        if not head.startswith(b"HTTP/1.1 200"):
            self.failures.append(head)
        self.buffer = b""
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """Report a server that closed the connection."""
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server closed a connection"))

    def _send(self) -> None:
        request = next(self.requests, None)
        if request is None:
            self.done.set_result(None)
            self.transport.close()
            return
        self.start = time.perf_counter()
        self.transport.write(request)


def _is_complete(head: bytes, body: bytes) -> bool:
    for line in head.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return body.endswith(LAST_CHUNK)


async def run(job: dict[str, Any]) -> dict[str, Any]:
    """Send all bodies from a number of clients."""
    head = f"POST {job['path']} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "
    requests = [head.encode() + f"{len(body.encode())}\r\n\r\n{body}".encode() for body in job["bodies"]]
    latencies: list[float] = []
    failures: list[bytes] = []
    iterator, loop = iter(requests), asyncio.get_running_loop()
    start = time.perf_counter()
    clients: list[Client] = []
    for _ in range(min(job["clients"], len(requests))):
        _, client = await loop.create_connection(
            lambda: Client(iterator, latencies, failures), "127.0.0.1", job["port"]
        )
        clients.append(client)
    await asyncio.gather(*(client.done for client in clients))
    seconds = time.perf_counter() - start
    if failures:
        print(failures[0].decode("latin-1"), file=sys.stderr)
    return {"seconds": seconds, "latencies": latencies, "failures": len(failures)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(json.load(sys.stdin)))))
