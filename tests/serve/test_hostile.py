"""Requests that harm others, or the server: each of these once did."""

import asyncio
import socket
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from regard.serve.settings import hash_key
from tests.serve.factories import KEY, REQUEST, RunningServer, Start, send


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.txt"
    path.write_text(f"alice {hash_key(KEY)}\n")
    return path


def test_keys_that_cannot_be_read_are_wrong_keys(start: Start, keys_file: Path) -> None:
    server = start(keys_file=keys_file)
    with server.client() as client:
        assert client.get("/languages?" + "a=1&" * 60).status_code == 401
        surrogate = b'{"q": "a", "api_key": "\\ud800"}'
        json_type = {"Content-Type": "application/json"}
        assert client.post("/translate", content=surrogate, headers=json_type).status_code == 401
        assert client.post("/translate", content=b"[" * 100_000, headers=json_type).status_code == 401


def test_pages_of_other_sites_get_nothing(server: RunningServer) -> None:
    with server.client() as client:
        for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[::2]:80", ""):
            assert client.get("/v1/models", headers={"Host": host}).status_code == 421, host
        for host in ("127.0.0.1", "localhost:1", "[::1]:8000", "LOCALHOST"):
            assert client.get("/v1/models", headers={"Host": host}).status_code == 200, host
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert client.post("/reload/en-de", headers=foreign).status_code == 403
        assert client.post("/translate", json=REQUEST, headers=foreign).status_code == 403
        plain = {"Origin": "http://evil.example:8000"}  # without https a browser sends no Sec-Fetch-Site
        assert client.post("/translate", json=REQUEST, headers=plain).status_code == 403
        own_origin = {"Origin": server.url}
        assert client.post("/translate", json=REQUEST, headers=own_origin).status_code == 200
        own = {"Sec-Fetch-Site": "same-origin"}
        assert client.post("/translate", json=REQUEST, headers=own).status_code == 200


def test_web_sockets_are_refused(server: RunningServer, start: Start, keys_file: Path) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    with_keys = start(keys_file=keys_file)
    for running_server, statuses in ((server, {404, 405}), (with_keys, {401})):
        for path in ("/none", "/translate", "/v1/completions"):
            with running_server.client() as client:
                assert client.get(path, headers=upgrade).status_code in statuses
    sent: list[Any] = []

    async def close() -> None:
        async def receive() -> dict[str, object]:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "websocket", "path": "/", "headers": []}
        app: Any = server.server.config.app
        await app(scope, receive, send)

    asyncio.run(close())
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_a_form_may_name_any_charset(server: RunningServer) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\n+2AA- \xff\r\n--b--\r\n'
    with server.client() as client:
        for charset in ("undefined", "utf-7", "idna", "none", "utf-16"):
            kind = {"Content-Type": f"multipart/form-data; boundary=b; charset={charset}"}
            assert client.post("/translate", content=body, headers=kind).status_code in (200, 400, 422), charset


def test_long_texts_and_phrases_are_refused_before_the_model_reads_them(server: RunningServer) -> None:
    with server.client() as client:
        sentence = {"q": "ﷺ" * 600, "target": "de"}
        answer = client.post("/translate", json=sentence)
        assert (answer.status_code, "maximum is 512" in answer.text) == (422, True)
        for stream in ({"stream": True}, {"stream": True, "beam_size": 1}):
            assert client.post("/translate", json=sentence | stream).status_code == 422
        for content in (b"x" * 20_000, b"a. " * 50_000):
            assert client.post("/translate_file", files={"file": ("a.txt", content)}).status_code == 422
        for field in ({"prefix": "a" * 10_000}, {"required": ["a" * 10_000]}, {"forbidden": ["a" * 10_000]}):
            assert client.post("/translate", json=REQUEST | field).status_code == 413
        for field in ({"prefix": "a" * 600}, {"required": ["a" * 101]}, {"forbidden": ["a" * 101]}):
            assert client.post("/translate", json=REQUEST | field).status_code == 422
        beams = client.post("/translate", json=REQUEST | {"required": ["ﷺ" * 30] * 2})
        assert (beams.status_code, "maximum is 128" in beams.text) == (422, True)
        assert client.post("/translate", json=REQUEST | {"required": ["Zwei"]}).status_code == 200
        many = {"q": ["One. Two. Three. Four. Five. Six."] * 60, "target": "de"}
        assert client.post("/translate", json=many).status_code == 413  # more than the queue holds: no use to try again
        explain = {"q": ["a", "b"], "explain": True}
        assert client.post("/translate", json=explain).status_code == 422


def is_closed(connection: socket.socket) -> bool:
    """Read until the server closes a connection."""
    with closing(connection):
        try:
            while connection.recv(100_000):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True


def test_headers_and_trailers_have_a_limit(server: RunningServer) -> None:
    chunked = b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    for head, unit in ((b"GET /health HTTP/1.1\r\nX-A: ", b"a"), (b"GET /", b"a"), (chunked + b"X-A: ", b"a")):
        begin = time.monotonic()
        with closing(send(server, head)) as connection, suppress(ConnectionError):
            for _ in range(400):
                connection.sendall(unit * 100_000)
            assert is_closed(connection)
        assert time.monotonic() - begin < 8
    with server.client() as client:
        assert client.get("/health", headers={"X-A": "a" * 30_000}).status_code == 200


def test_a_full_queue_refuses_before_the_body_arrives(start: Start) -> None:
    server = start()
    server.state.models["en-de"].batcher._max_waiting = 0
    head = b"POST /translate?a=b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
    with closing(send(server, head)) as connection:
        for following in (head, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"):  # the connection stays open
            answer = b""
            while b"queue is full" not in answer and (part := connection.recv(4096)):
                answer += part
            assert answer.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after: 1\r\n" in answer
            connection.sendall(b"{}" + following)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    with server.client() as client:
        assert client.post("/v1/completions", json={"model": "writer", "max_tokens": 1}).status_code == 200
        assert 'regard:request_refused_total{reason="queue"} 2.0' in client.get("/metrics").text


def test_no_connection_stays_without_a_deadline(start: Start) -> None:
    server = start(deadlines={"headers": 0.5, "body": 0.5, "keep_alive": 1})
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    late_body = b"POST /none HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
    line_breaks, rest_of_body = send(server, get), send(server, late_body)
    time.sleep(0.3)
    line_breaks.sendall(b"\r\n")
    rest_of_body.sendall(b"0\r\n\r\n")
    assert is_closed(line_breaks)
    assert is_closed(rest_of_body)


def test_a_client_that_does_not_read_is_closed(start: Start) -> None:
    server = start(deadlines={"headers": 1, "body": 0.5})
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.settimeout(10)
        begin = time.monotonic()
        with suppress(ConnectionError, TimeoutError):
            while time.monotonic() - begin < 10:
                connection.sendall(request * 20)
                time.sleep(0.01)
        assert time.monotonic() - begin < 9
