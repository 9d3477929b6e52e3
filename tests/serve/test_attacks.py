"""Attacks on a running server: each fails, and other clients are served."""

import json
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from regard.text.chat_template import ChatTemplate
from tests.serve.factories import TEMPLATE, RunningServer, Start, wait_until

CHAT = {"model": "writer", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}


@pytest.fixture
def writer(start: Start, folders: dict[str, Path], tmp_path: Path) -> tuple[RunningServer, Path]:
    """A server with a language model, and the file of its chat template."""
    path = tmp_path / "chat.jinja"
    path.write_text("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
    return start(models={"writer": folders["writer"]}, chat_templates={"writer": path}), path


def test_chat_template_bomb_is_answered_with_422(writer: tuple[RunningServer, Path]) -> None:
    server, path = writer
    with server.client() as client:
        answer = client.post("/v1/chat/completions", json=CHAT)
        assert answer.status_code == 422
        assert "CPU time" in answer.text
        path.write_text(TEMPLATE)
        assert client.post("/reload/writer").status_code == 200
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200


def test_chat_template_renders_outside_the_event_loop(
    writer: tuple[RunningServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = writer
    has_begun, may_end = threading.Event(), threading.Event()

    def render(*_: object) -> str:
        has_begun.set()
        assert may_end.wait(60)
        return "Hi"

    monkeypatch.setattr(ChatTemplate, "render", render)
    with server.client() as client, ThreadPoolExecutor(1) as pool:
        chat = pool.submit(client.post, "/v1/chat/completions", json=CHAT)
        try:
            assert has_begun.wait(60)
            assert client.get("/health").status_code == 200
            assert not chat.done()
        finally:
            may_end.set()
        assert chat.result().status_code == 200


def test_pipelined_request_reset_connection_leaves_no_input_in_the_queue(start: Start) -> None:
    server, has_begun, may_end = start(queue={"batch_texts": 1}), threading.Event(), threading.Event()
    batcher = server.state.models["en-de"].batcher
    run = batcher._run

    def hold(*arguments: Any) -> Any:
        has_begun.set()
        assert may_end.wait(60)
        return run(*arguments)

    batcher._run = hold
    body = json.dumps({"q": ["Two men."] * 30, "target": "de"}).encode()
    head = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    try:
        for _ in range(4):
            with closing(socket.create_connection(("127.0.0.1", server.port))) as connection:
                connection.sendall(head % len(body) + body + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert has_begun.wait(60)
                wait_until(lambda: batcher.waiting > 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
            wait_until(lambda: batcher.waiting == 0)
    finally:
        may_end.set()


def test_pipelined_request_is_dropped_and_the_first_is_answered(server: RunningServer) -> None:
    """The second one must neither be answered out of turn nor add its headers and body to the first."""
    first = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = json.dumps({"q": "Two men.", "target": "de"}).encode()
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)) as connection:
        second = b"POST /translate HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 4\r\n\r\nevil"
        connection.sendall(first + b"Content-Length: %d\r\n\r\n" % len(body) + body + second)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))  # until the server closes the connection
    assert answer.count(b"HTTP/1.1") == 1
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer
    assert b"translatedText" in answer


@pytest.mark.parametrize("origin", ["null", "file://", "http://localhost:1", "http://127.0.0.1:1", "https://127.0.0.1"])
@pytest.mark.parametrize("path", ["/translate", "/reload/en-de", "/v1/completions", "/translate_file", "/none"])
def test_post_from_a_page_of_another_origin_is_refused(server: RunningServer, origin: str, path: str) -> None:
    with server.client() as client:
        for headers in ({"Origin": origin}, {"Origin": origin, "Sec-Fetch-Site": "none"}):
            assert client.post(path, headers=headers).status_code == 403
        for site in ("cross-site", "same-site", "unknown"):
            headers = {"Origin": server.url, "Sec-Fetch-Site": site}
            assert client.post(path, headers=headers).status_code == 403


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", "http://localhost", 404),
        ("localhost:80", "http://localhost", 404),
        ("LOCALHOST:8000", "http://localhost:8000", 404),
        ("[::1]:8000", "http://[::1]:8000", 404),
        ("localhost:443", "http://localhost", 403),
        ("localhost", "http://localhost:8000", 403),
        ("localhost", "localhost", 403),
    ],
)
def test_post_origin_is_compared_with_host_and_port(server: RunningServer, host: str, origin: str, status: int) -> None:
    with server.client() as client:
        assert client.post("/none", headers={"Host": host, "Origin": origin}).status_code == status


def test_rate_limit_ignores_forwarded_addresses_of_unknown_proxies(start: Start) -> None:
    for proxies, statuses in (((), [200, 429, 429]), (("127.0.0.1",), [200, 200, 429])):
        server = start(requests_per_minute=1, trusted_proxies=proxies)
        with server.client() as client:
            addresses = ("192.0.2.1", "192.0.2.2", "192.0.2.1")
            codes = [client.get("/health", headers={"X-Forwarded-For": address}).status_code for address in addresses]
        assert codes == statuses


LONG_SENTENCE = "two young men " * 300  # more tokens than a sentence may have


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/translate_file", {"files": {"file": ("a.txt", b"Go on. " * 9000)}}),
        ("/translate_file", {"files": {"file": ("a.txt", b"Dogs run.\n" * 256 + LONG_SENTENCE.encode())}}),
        ("/translate_file", {"files": {"file": ("a.html", b"<p>Dogs run.</p>" * 99 + LONG_SENTENCE.encode())}}),
        ("/translate", {"json": {"q": ["Dogs run.", LONG_SENTENCE], "target": "de"}}),
        ("/translate", {"json": {"q": ["<b>Dogs</b>", LONG_SENTENCE], "target": "de", "format": "html"}}),
        ("/translate", {"json": {"q": ["Dogs run.", LONG_SENTENCE], "target": "de", "stream": True}}),
        ("/translate", {"json": {"q": ["Dogs.", LONG_SENTENCE], "target": "de", "stream": True, "beam_size": 1}}),
        ("/translate", {"json": {"q": "Dogs run. " * 60, "target": "de", "explain": True}}),
    ],
)
def test_limits_of_all_sentences_come_before_the_first_batch(
    server: RunningServer, path: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the model computes")

    translator = server.state.models["en-de"].pipeline
    monkeypatch.setattr(translator, "translate_sources", fail)
    monkeypatch.setattr(translator, "stream", fail)
    with server.client() as client:
        answer = client.post(path, **options)
    assert answer.status_code == 422, answer.text[:500]
    assert any(word in answer.json()["error"] for word in ("sentences", "tokens", "`explain`"))


def test_files_leave_room_in_the_queue_for_other_requests(start: Start) -> None:
    """Files of many sentences queue one part of one file at a time."""
    server, has_begun, may_end = start(queue={"batch_texts": 2}), threading.Event(), threading.Event()
    batcher = server.state.models["en-de"].batcher
    run = batcher._run

    def hold(*arguments: Any) -> Any:
        has_begun.set()
        assert may_end.wait(60)
        return run(*arguments)

    batcher._run = hold
    counts = []

    def count(*arguments: Any, **options: Any) -> Any:
        counts.append(batcher.waiting + batcher.running)
        return submit(*arguments, **options)

    submit, batcher.submit_all = batcher.submit_all, count  # type: ignore[method-assign]

    def ask(_: int) -> int:
        with server.client() as client:
            file = {"file": ("a.txt", b"One. Two. Three. Four.\n")}
            return client.post("/translate_file", files=file).status_code

    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(ask, number) for number in range(3)]
        assert has_begun.wait(60)
        wait_until(lambda: server.state.uploads._open == 3)
        may_end.set()
        assert [answer.result() for answer in answers] == [200] * 3
    assert counts == [0] * 6  # each part finds the queue empty


def test_file_translations_are_limited_in_number(start: Start) -> None:
    server = start(queue={"uploads": 1})
    server.state.uploads._open = 1
    with server.client() as client:
        answer = client.post("/translate_file", files={"file": ("a.txt", b"One.")})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
