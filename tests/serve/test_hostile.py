"""Requests that harm others, or the server: each of these once did."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.serve.batcher import Batcher, DeadlineError, QueueFullError
from regard.serve.documents import translate_document
from regard.serve.html_text import split_html
from regard.serve.settings import hash_key
from regard.text.sentences import split_sentences
from tests.serve.conftest import RunningServer
from tests.serve.test_batcher import Model, run, running, submit

KEY = "correct horse battery staple"
Start = Callable[..., RunningServer]
REQUEST = {"q": "Two young men are outside.", "source": "en", "target": "de"}
BOUND = 1.0  # seconds


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


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<!--",
        "<script>",
        "<![CDATA[",
        "<pre ",
        "</script ",
        "< script",
        "<svg><pre>",
        '<a b="',
        "<a b='c\" ",
        "<a b='>'",
    ],
)
def test_html_is_split_in_linear_time(unit: str) -> None:
    html = unit * (200_000 // len(unit))
    begin = time.process_time()
    assert "".join(part for part, _ in split_html(html)) == html
    assert time.process_time() - begin < BOUND


@given(st.lists(st.sampled_from(["<", ">", "<!--", "-->", "<pre", "</PRE >", "<script>", "</script", "a", " ", "<b>"])))
def test_html_is_split_as_the_pattern_says(units: list[str]) -> None:
    import re

    names = "script|style|code|pre|textarea|svg|math"
    pattern = rf"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<(?P<name>{names})\b[^>]*>.*?</(?P=name)\s*>|<[a-zA-Z/!?][^>]*>"
    html, markup = "".join(units), list[str]()
    markup = [match.group() for match in re.finditer(pattern, html, re.DOTALL | re.IGNORECASE)]
    assert [part for part, is_text in split_html(html) if not is_text and part.strip()] == markup


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ('<img alt="x > y" src="a.png">one', ["one"]),
        ("<p title='a>b' lang=en>one</p>", ["one"]),
        ("5 < 6, so <b>two</b>", ["5 < 6, so ", "two"]),
        ("<p title=it's>don't</p>", ["don't"]),
        ('<a href="never ends>one</a>', ["one"]),
        ("<code class='>'>x</code> one", [" one"]),
    ],
)
def test_quoted_values_and_signs_are_no_tags(html: str, texts: list[str]) -> None:
    assert [part for part, is_text in split_html(html) if is_text] == texts


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.srt", "a.html"])
def test_files_are_read_in_linear_time_and_bounded(name: str) -> None:
    async def translate(texts: list[str]) -> list[str]:
        return [text.upper() for text in texts]

    def read(content: str) -> bytes:
        begin = time.process_time()
        file = asyncio.run(translate_document(name, content.encode(), translate, max_lines=1000))
        assert time.process_time() - begin < BOUND
        return file.content

    spaces = "a" + " " * 200_000 + "b"
    assert read(spaces).decode() == spaces.upper()
    assert read("> " * 50_000 + "1" * 50_000 + "b \n").endswith(b"B \n")
    for unit in ("\n", "\r", "\u2028") if name != "a.html" else ("<b>",):
        with pytest.raises(RegardError, match="more than 1,000 lines"):
            read(unit * 200_000)


def test_long_texts_and_phrases_are_refused_before_the_model_reads_them(server: RunningServer) -> None:
    with server.client() as client:
        sentence = {"q": "ﷺ" * 600, "target": "de"}
        answer = client.post("/translate", json=sentence)
        assert (answer.status_code, "512 tokens" in answer.text) == (422, True)
        for stream in ({"stream": True}, {"stream": True, "beam_size": 1}):
            assert client.post("/translate", json=sentence | stream).status_code == 422
        for content in (b"x" * 20_000, b"a. " * 50_000):
            assert client.post("/translate_file", files={"file": ("a.txt", content)}).status_code == 422
        for field in ({"prefix": "a" * 10_000}, {"required": ["a" * 10_000]}, {"forbidden": ["a" * 10_000]}):
            assert client.post("/translate", json=REQUEST | field).status_code == 413
        for field in ({"prefix": "a" * 600}, {"required": ["a" * 101]}, {"forbidden": ["a" * 101]}):
            assert client.post("/translate", json=REQUEST | field).status_code == 422
        beams = client.post("/translate", json=REQUEST | {"required": ["ﷺ" * 30] * 2})
        assert (beams.status_code, "128 beams" in beams.text) == (422, True)
        assert client.post("/translate", json=REQUEST | {"required": ["Zwei"]}).status_code == 200
        many = {"q": ["One. Two. Three. Four. Five. Six."] * 60, "target": "de"}
        assert client.post("/translate", json=many).status_code == 413  # more than the queue holds: no use to try again
        explain = {"q": ["a", "b"], "explain": True}
        assert client.post("/translate", json=explain).status_code == 422


def send(server: RunningServer, content: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.settimeout(10)
    connection.sendall(content)
    return connection


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


def test_a_client_that_leaves_cancels_its_request(start: Start) -> None:
    """The model is busy with one text after the other; the requests behind it belong to nobody any more."""
    server = start(queue={"batch_texts": 1})
    with server.client() as client:

        def count() -> float:
            lines = client.get("/metrics").text.splitlines()
            return sum(float(line.split()[-1]) for line in lines if line.startswith("regard:num_requests_waiting{"))

        body = httpx.Request("POST", f"{server.url}/translate", json=REQUEST | {"q": ["Two men."] * 60})
        raw = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        connections = [send(server, raw + b"%d\r\n\r\n" % len(body.content) + body.content) for _ in range(4)]
        end = time.monotonic() + 10
        while count() < 150:
            assert time.monotonic() < end
        for connection in connections:
            connection.close()
        end = time.monotonic() + 1
        while count():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_stream_that_cannot_start_has_its_own_status(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server, is_answered = start(queue={"max_waiting": 1}), threading.Event()
    request = {"model": "writer", "prompt": "Two", "max_tokens": 1000, "stream": True}
    too_long = httpx.post(f"{server.url}/v1/completions", json=request | {"prompt": "ab " * 3000})
    assert too_long.status_code == 422
    model = server.state.models["writer"]
    stream = model.stream

    def hold(parts: Iterator[str]) -> Iterator[str]:
        """Keep the stream open until the second request has its answer, however slow this machine is."""
        for part in parts:
            yield part
            is_answered.wait(60)

    monkeypatch.setattr(model, "stream", lambda adapter, begin: stream(adapter, lambda: hold(begin())))
    with server.client() as client, client.stream("POST", "/v1/completions", json=request) as first:
        parts = first.iter_bytes()
        next(parts)
        try:
            second = httpx.post(f"{server.url}/v1/completions", json=request)
        finally:
            is_answered.set()
        assert (second.status_code, second.headers.get("retry-after")) == (429, "1")


def test_reloads_at_the_same_time_leave_nothing_behind(start: Start, folders: dict[str, Path]) -> None:
    server = start()
    before = threading.active_count()
    with ThreadPoolExecutor(4) as pool, server.client() as client:
        codes = set(pool.map(lambda _: client.post("/reload/writer").status_code, range(4)))
        assert {200} <= codes <= {200, 409}
    assert sum(thread.name.startswith("model") for thread in threading.enumerate()) <= before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_state(server).models["writer"], "folder", folders["en-de"])
        with server.client() as client:
            assert client.post("/reload/writer").status_code == 422  # another task: the old model stays
            assert client.post("/v1/completions", json={"model": "writer", "prompt": "A"}).status_code == 200


def server_state(server: RunningServer) -> Any:
    from tests.serve.test_security import find_app

    return find_app(server.server.config.loaded_app).state.server


def test_one_bad_item_does_not_fail_its_batch() -> None:
    class Strict(Model):
        def __call__(self, key: object, items: list[str]) -> list[str | Exception]:
            self.batches.append((key, items))
            time.sleep(0.02)
            if "bad" in items:
                raise RegardError("bad")
            return list[str | Exception](items)

    async def test() -> None:
        model = Strict()
        async with running(model) as batcher:
            first = submit(batcher, "first")
            await asyncio.sleep(0.01)
            tasks = [submit(batcher, item) for item in ("good", "bad", "better")]
            results = await asyncio.gather(first, *tasks, return_exceptions=True)
        assert results[:2] == ["first", "good"]
        assert isinstance(results[2], RegardError)
        assert results[3] == "better"

    run(test)


def test_a_deadline_is_kept_while_a_batch_runs() -> None:
    async def test() -> None:
        async with running(Model(0.5)) as batcher:
            first = submit(batcher, "first")
            await asyncio.sleep(0.01)
            begin = time.perf_counter()
            with pytest.raises(DeadlineError):
                await batcher.submit("k", "late", tokens=1, timeout=0.05)
            assert time.perf_counter() - begin < 0.3
            assert batcher.waiting == 0
            assert await first == "FIRST"

    run(test)


def test_calls_are_bounded_as_requests_are() -> None:
    async def test() -> None:
        batcher: Batcher[str, str] = Batcher(Model(), max_tokens=9, max_requests=1, max_waiting=2, window=0)
        batcher.start()
        calls = [asyncio.ensure_future(batcher.call(lambda: time.sleep(0.05))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await batcher.call(lambda: None)
        await asyncio.gather(*calls)
        await batcher.call(lambda: None)
        await batcher.stop()

    run(test)


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "regard", "serve", str(tmp_path / "none"), "--port", "0"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode != 0
    assert "There is no such folder." in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("unit", ["a. ", "1. ", ".", ".)", " ", "\n", "!? ", "。", "Dr. "])
def test_sentences_are_split_in_linear_time(unit: str) -> None:
    for text in (unit * (300_000 // len(unit)), "a " + unit * (300_000 // len(unit)) + "b"):
        seconds: list[float] = []
        while not seconds or (min(seconds) >= BOUND and len(seconds) < 3):  # a busy machine adds to the CPU time
            begin = time.process_time()
            assert "".join(sentence + space for sentence, space in split_sentences(text)) == text
            seconds.append(time.process_time() - begin)
        assert min(seconds) < BOUND
