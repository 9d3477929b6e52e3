"""What stands before every route: keys, limits, deadlines; nothing larger than a limit is ever allocated."""

import asyncio
import json
import re
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI  # type: ignore[import-untyped]

from regard.serve import security
from regard.serve.security import BodyLimitMiddleware, ClientMiddleware
from regard.serve.settings import hash_key
from tests.serve.factories import KEY, RunningServer, find_app

Start = Callable[..., RunningServer]


def find_routes(server: RunningServer) -> list[tuple[str, str]]:
    """Return method and path of every route in the route table."""
    app = find_app(server.server.config.loaded_app)
    routes = [(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods]
    routes += [("GET", route.path) for route in app.routes if hasattr(route, "path")]
    # The address of a translated file cannot be guessed and needs no key.
    routes = [(method, path) for method, path in routes if not path.startswith("/download_file/")]
    return [(method, path.replace("{name}", "writer")) for method, path in routes]


def test_every_route_of_the_table_needs_the_key_whatever_the_host(start: Start, keys_file: Path) -> None:
    server = start(keys_file=keys_file)
    routes = find_routes(server)
    assert len(routes) > 10
    with server.client() as client:
        assert client.get("/download_file/none/a.txt").status_code == 404
        for method, path in [*routes, ("GET", "/nothing"), ("GET", "//v1/models"), ("GET", "/health/")]:
            for host in (None, "/health", "127.0.0.1/health?", "evil.example"):
                headers = {} if host is None else {"Host": host}
                assert client.request(method, path, headers=headers).status_code == 401, (method, path, host)
        good = {"Authorization": f"Bearer {KEY}"}
        assert client.get("/health", headers=good).status_code == 200
        assert client.get("/health", auth=("anyone", KEY)).status_code == 200  # a browser asks for a password
        for wrong in (f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", "Bearer x", "Basic !!!", f"bearer {hash_key(KEY)}", "x"):
            assert client.get("/health", headers={"Authorization": wrong}).status_code == 401
        request = {"q": "A", "source": "en", "target": "de"}
        assert client.post("/translate", json=request | {"api_key": KEY}).status_code == 200
        assert client.post("/translate", data=request | {"api_key": KEY}).status_code == 200
        assert client.post("/translate", json=request | {"api_key": "x"}).status_code == 401
        fields, file = {"source": "en", "target": "de"}, {"file": ("a.txt", b"two dogs\n")}
        assert client.post("/translate_file", data=fields | {"api_key": KEY}, files=file).status_code == 200
        assert client.post("/translate_file", data=fields | {"api_key": "x"}, files=file).status_code == 401
        assert client.post("/v1/completions", json={"model": "writer", "api_key": KEY}).status_code == 401
    assert LibreTranslateAPI(server.url, KEY).languages()[0]["code"] == "en"


def test_open_routes_are_the_only_ones_without_a_key(start: Start, keys_file: Path) -> None:
    server = start(keys_file=keys_file, open_routes=("/health",))
    with server.client() as client:
        assert client.get("/health").status_code == 200
        assert client.get("/ready").status_code == 401


def test_limits_are_answered_before_anything_is_computed(server: RunningServer) -> None:
    long_text = "a " * 6000
    cases: list[tuple[str, dict[str, object], int]] = [
        ("/translate", {"q": long_text, "target": "de"}, 413),
        ("/translate", {"q": ["a"] * 65, "target": "de"}, 413),
        ("/translate", {"q": "Dogs run. " * 300, "target": "de"}, 413),
        ("/translate", {"q": "a", "target": "de", "alternatives": 8}, 422),
        ("/translate", {"q": "a", "target": "de", "beam_size": 17}, 422),
        ("/translate", {"q": "a", "target": "de", "beam_size": -1}, 422),
        ("/translate", {"q": "a", "target": "de", "required": ["a"] * 5}, 422),
        ("/translate", {"q": "a", "target": "de", "format": "pdf"}, 422),
        ("/translate", {"q": {"a": 1}, "target": "de"}, 422),
        ("/translate", {}, 422),
        ("/v1/completions", {"model": "writer", "prompt": long_text}, 413),
        ("/v1/completions", {"model": "writer", "prompt": "a", "n": 9}, 422),
        ("/v1/completions", {"model": "writer", "prompt": "a", "max_tokens": 1025}, 422),
        ("/v1/completions", {"model": "writer", "prompt": "a", "max_tokens": 10**30}, 422),
        ("/v1/completions", {"model": "writer", "prompt": "a", "stop": "a" * 101}, 422),
        ("/v1/completions", {"model": "writer", "prompt": "a", "temperature": 1e9}, 422),
        ("/v1/completions", {"model": "writer", "prompt": "a", "seed": 2**64}, 422),
        ("/v1/completions", {"model": "writer", "prompt": "a", "top_p": 0}, 422),
        ("/v1/chat/completions", {"model": "writer", "messages": []}, 422),
        ("/v1/chat/completions", {"model": "writer", "messages": [{"role": "user", "content": [{"type": "x"}]}]}, 422),
    ]
    with server.client() as client:
        for path, body, status in cases:
            response = client.post(path, json=body)
            assert response.status_code == status, (path, str(body)[:80], response.text[:200])
            error = response.json()["error"]
            assert error if path == "/translate" else error["message"]
        for content in (b"", b"{", b"[" * 5000, b"\xff\xfe", b'{"q": "\\ud800"}', b"null", b"1e999"):
            response = client.post("/translate", content=content, headers={"Content-Type": "application/json"})
            assert response.status_code in (400, 422), (content[:20], response.status_code)


def test_a_body_is_never_read_beyond_its_limit(start: Start) -> None:
    server = start(limits={"body_bytes": 10_000})
    with server.client() as client:
        assert client.post("/translate", content=b"x" * 10_001).status_code == 413

    def endless() -> object:
        while True:
            yield b"x" * 1000

    with server.client() as client:
        try:
            response = client.post("/translate", content=endless(), headers={"Content-Type": "application/json"})  # type: ignore[arg-type]
            assert response.status_code == 413
        except httpx.TransportError:
            pass  # the server answered and closed while the client was still writing
    with server.client() as client:
        assert client.get("/health").status_code == 200


def test_slow_headers_and_slow_bodies_are_closed(start: Start) -> None:
    server = start(deadlines={"headers": 0.5, "body": 0.5})
    begin = time.monotonic()
    requests = [
        b"",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: ",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ]
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
    for number, connection in enumerate(sockets):
        connection.sendall(requests[number % len(requests)])
        connection.settimeout(10)
    for connection in sockets:
        while connection.recv(1000):  # b"" when the server closes
            pass
        connection.close()
    assert time.monotonic() - begin < 8
    with server.client() as client:
        assert client.get("/health").status_code == 200
        time.sleep(1)  # a connection between two requests may stay open longer than a header may take
        assert client.get("/health").status_code == 200


def test_rate_limit_refuses_with_retry_after(start: Start, keys_file: Path) -> None:
    server = start(keys_file=keys_file, requests_per_minute=3)
    with server.client(headers={"Authorization": f"Bearer {KEY}"}) as client:
        codes = [client.get("/health").status_code for _ in range(5)]
        assert codes == [200, 200, 200, 429, 429]
        assert int(client.get("/health").headers["Retry-After"]) >= 1


@pytest.mark.parametrize("keys", [{}, {hash_key(KEY): "alice"}])
def test_body_limit_refuses_once_a_body_that_is_longer_than_it_says(keys: dict[str, str]) -> None:
    """A server reads as many bytes as content-length says; an ASGI server without that check must not matter.

    With keys the body of this route is read for its key, which is not refused a second time.
    """
    sent: list[dict[str, object]] = []
    scope: dict[str, Any] = {"type": "http", "path": "/translate", "method": "POST", "headers": [], "state": {}}

    async def app(_scope: object, receive: Callable[[], object], send: Callable[[object], Awaitable[None]]) -> None:
        while (await receive()).get("more_body"):  # type: ignore[misc]
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"x" * 60, "more_body": True}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    client: Any = ClientMiddleware(
        app,  # type: ignore[arg-type]
        keys=keys,
        open_routes=frozenset(),
        reload_keys=frozenset(),
        requests_per_minute=0,
    )
    limit: Any = BodyLimitMiddleware(client, body_bytes=100, upload_bytes={})
    asyncio.run(limit(scope, receive, send))
    assert len(sent) == 2
    assert sent[0]["status"] == 413
    assert "100" in json.loads(sent[1]["body"])["error"]  # type: ignore[arg-type]
    assert scope["state"]["refusal"] == "body"


def test_refused_requests_are_counted_by_their_reason(start: Start, keys_file: Path) -> None:
    with start(keys_file=keys_file, limits={"body_bytes": 100}).client() as client:
        client.get("/health")
        client.post("/translate", content=b"x" * 101)
        metrics = client.get("/metrics", headers={"Authorization": f"Bearer {KEY}"}).text
    assert re.findall(r'refused_total{reason="(\w+)"} (.+)', metrics) == [("key", "1.0"), ("body", "1.0")]


ALICE, BOB = {"Authorization": "Bearer key-of-alice"}, {"Authorization": "Bearer key-of-bob"}


@pytest.fixture
def two_keys_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.txt"
    path.write_text(f"alice {hash_key('key-of-alice')}\nbob {hash_key('key-of-bob')}\n")
    return path


def test_rate_limit_two_keys_of_one_address_are_counted_apart(start: Start, two_keys_file: Path) -> None:
    with start(keys_file=two_keys_file, requests_per_minute=2).client() as client:
        assert [client.get("/health", headers=ALICE).status_code for _ in range(3)] == [200, 200, 429]
        assert [client.get("/health", headers=BOB).status_code for _ in range(3)] == [200, 200, 429]
        assert client.get("/health", headers=ALICE).status_code == 429


@pytest.mark.parametrize(
    ("route", "others"), [("/", ("/health", "/ready", "/v1/models")), ("/v1/models", ("/v1/models/writer", "/health"))]
)
def test_open_route_opens_no_longer_path(
    start: Start, two_keys_file: Path, route: str, others: tuple[str, ...]
) -> None:
    with start(keys_file=two_keys_file, open_routes=(route,)).client() as client:
        assert client.get(route).status_code != 401
        assert [client.get(path).status_code for path in others] == [401] * len(others)
        assert [client.get(path, headers=BOB).status_code for path in others] == [200] * len(others)


def test_rate_limit_forgets_the_clients_that_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "MAX_CLIENTS", 3)
    limit = security.RateLimit(1)
    assert [limit.take(client, now=0.0) for client in "abcd"] == [0.0] * 4
    assert limit.take("d", now=0.0) > 0
    assert limit.take("a", now=0.0) == 0.0  # forgotten, so that memory is bounded
