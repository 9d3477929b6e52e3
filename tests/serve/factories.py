"""Batchers, served models and apps that several tests of the server use."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from regard.decode.filters import Filters
from regard.serve.batcher import Batcher
from regard.serve.metrics import Metrics
from regard.serve.model import ServedModel
from regard.serve.server import make_config
from regard.serve.settings import ServeConfig
from regard.serve.state import ServerState

KEY = "correct horse battery staple"
REQUEST = {"q": "Two young men are outside.", "source": "en", "target": "de"}
BOUND = 1.0  # seconds
GREEDY = Filters(temperature=0)
SENTENCES = ("Two young men.", "A girl climbs.")


TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"


@dataclass(frozen=True)
class RunningServer:
    """A running server."""

    url: str
    server: uvicorn.Server
    thread: threading.Thread
    state: ServerState

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def client(self, **options: Any) -> httpx.Client:
        options = {"timeout": 30, "verify": False} | options  # there is no TLS: reading certificates takes 80 ms
        return httpx.Client(base_url=self.url, **options)


@contextmanager
def run_in_thread(settings: ServeConfig) -> Iterator[RunningServer]:
    """Run uvicorn with the application in a thread, on a free port."""
    state = ServerState(settings)
    config = make_config(settings, state)
    config.port, config.timeout_graceful_shutdown = 0, 5
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 60
    while not server.started and thread.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    assert server.started
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield RunningServer(f"http://127.0.0.1:{port}", server, thread, state)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


Start = Callable[..., RunningServer]


class Model:
    """A model that takes some time for each batch and remembers its batches and threads."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.batches, self.threads = seconds, list[tuple[Hashable, list[str]]](), set[int]()

    def __call__(self, key: Hashable, items: list[str]) -> list[str | Exception]:
        self.threads.add(threading.get_ident())
        self.batches.append((key, items))
        time.sleep(self.seconds)
        return [ValueError(item) if item == "bad" else item.upper() for item in items]


@asynccontextmanager
async def running(model: Model, **changes: Any) -> AsyncIterator[Batcher[str, str]]:
    settings: dict[str, Any] = {"max_tokens": 100, "max_requests": 8, "max_waiting": 50, "window": 0.0} | changes
    batcher: Batcher[str, str] = Batcher(model, **settings)
    batcher.start()
    try:
        yield batcher
    finally:
        async with asyncio.timeout(10):
            await batcher.stop()


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous test with a time limit."""

    async def limited() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(limited())


def submit(batcher: Batcher[str, str], item: str, key: str = "k", tokens: int = 1) -> "asyncio.Task[str]":
    return asyncio.ensure_future(batcher.submit(key, item, tokens=tokens, timeout=10))


def send(server: RunningServer, content: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.settimeout(10)
    connection.sendall(content)
    return connection


def find_app(app: object) -> FastAPI:
    while not isinstance(app, FastAPI):
        app = app.app  # type: ignore[attr-defined]
    return app


def post_large(server: RunningServer, path: str) -> httpx.Response:
    """Send a body that is too large together with its headers: the server closes the connection without reading it."""
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n".encode() + b"x" * 101
        )
        head, _, body = b"".join(iter(lambda: connection.recv(4096), b"")).partition(b"\r\n\r\n")
    return httpx.Response(int(head.split()[1]), content=body)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def serve(folder: Path, use: Callable[[ServedModel], Awaitable[None]], **changes: Any) -> None:
    async def run() -> None:
        model = ServedModel(
            "m", folder, ServeConfig(**{"models": {"m": folder}, "engine": "torch"} | changes), Metrics()
        )
        model.batcher.start()
        try:
            await use(model)
        finally:
            await model.batcher.stop()

    asyncio.run(run())


Files = list[tuple[str, tuple[str, bytes]]]


def classify(server: RunningServer, files: list[bytes], **fields: str) -> Any:
    content: Files = [("file", ("a", file)) for file in files]
    with server.client() as client:
        return client.post("/classify", files=content, data=fields)


def transcribe(server: RunningServer, file: bytes, **fields: str) -> Any:
    with server.client() as client:
        return client.post("/v1/audio/transcriptions", files={"file": ("a.wav", file)}, data=fields)


def save(folder: Path, content: bytes, name: str) -> Path:
    (folder / name).write_bytes(content)
    return folder / name
