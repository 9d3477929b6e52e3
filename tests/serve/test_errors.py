"""Errors have the form that the clients of each protocol read, and refusals are logged without secrets."""

import json
import logging
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from regard.serve.server import Formatter
from regard.serve.settings import add_key
from tests.serve.conftest import RunningServer

Start = Callable[..., RunningServer]
JSON = {"Content-Type": "application/json"}


def post_large(server: RunningServer, path: str) -> httpx.Response:
    """Send a body that is too large together with its headers: the server closes the connection without reading it."""
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n".encode() + b"x" * 101
        )
        head, _, body = b"".join(iter(lambda: connection.recv(4096), b"")).partition(b"\r\n\r\n")
    return httpx.Response(int(head.split()[1]), content=body)


def check_error(path: str, content: Any) -> str:
    """Return the message of an error in the form of the path's protocol."""
    if path.startswith("/v1"):
        assert set(content["error"]) == {"message", "type", "param", "code"}
        text = content["error"]["message"]
    else:
        assert set(content) == {"error"}
        text = content["error"]
    assert isinstance(text, str)
    return text


def test_error_body_has_the_form_of_the_protocol(server: RunningServer, start: Start, tmp_path: Path) -> None:
    key = {"Authorization": f"Bearer {add_key(tmp_path / 'keys.txt', 'alice')}"}
    limited = start(keys_file=tmp_path / "keys.txt", requests_per_minute=1, limits={"body_bytes": 100})
    with server.client() as client, limited.client() as limited_client:
        limited_client.get("/health", headers=key)
        for path in ("/translate", "/detect", "/translate_file", "/v1/completions", "/v1/embeddings"):
            answers = [
                client.post(path, content=b"{", headers=JSON),
                client.post(path, headers={"Origin": "null"}),
                post_large(limited, path),
                client.request("PATCH", path),
                limited_client.post(path),
                limited_client.post(path, headers=key),
            ]
            assert [answer.status_code for answer in answers] == [422, 403, 413, 405, 401, 429]
            for answer in answers:
                check_error(path, answer.json())


@pytest.mark.parametrize("path", ["/translate", "/detect", "/v1/completions", "/classify"])
def test_malformed_json_is_named(server: RunningServer, path: str) -> None:
    with server.client() as client:
        error = client.post(path, content=b'{"q": ', headers=JSON).json()["error"]
    assert (error if isinstance(error, str) else error["message"]).startswith("The body is not valid JSON: ")


def test_wrong_field_is_the_param_of_an_openai_error(server: RunningServer) -> None:
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
        pytest.raises(openai.UnprocessableEntityError) as caught,
    ):
        client.completions.create(model="writer", prompt="A", temperature=9)
    assert (caught.value.param, caught.value.type) == ("temperature", "invalid_request_error")
    assert "temperature: " in caught.value.message


def test_failure_of_the_server_has_the_form_of_the_protocol(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(server.state, "find", fail)
    bodies = {"/translate": {"q": "A", "target": "de"}, "/v1/completions": {"model": "writer", "prompt": "A"}}
    with server.client() as client:
        for path, body in bodies.items():
            answer = client.post(path, json=body)
            assert (answer.status_code, check_error(path, answer.json())) == (500, "The server failed.")


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/translate", {"q": "A", "targt": "de"}, "target"),
        ("/translate", {"q": "A", "alternative": 2}, "alternatives"),
        ("/v1/completions", {"model": "writer", "prompt": "A", "max_token": 3}, "max_tokens"),
        ("/v1/chat/completions", {"model": "writer", "messages": [], "temprature": 0}, "temperature"),
        ("/classify", {"input": "A", "modell": "a"}, "model"),
    ],
)
def test_misspelled_field_is_refused_with_a_suggestion(
    server: RunningServer, path: str, body: dict[str, Any], name: str
) -> None:
    with server.client() as client:
        answer = client.post(path, json=body)
        assert answer.status_code == 422
        assert f"Did you mean '{name}'?" in answer.text
        if path == "/translate":
            assert f"Did you mean '{name}'?" in client.post(path, data=body).text
            file = {"file": ("a.txt", b"Two dogs.")}
            assert client.post("/translate_file", data={"targt": "de"}, files=file).status_code == 422
            assert client.post("/translate_file?targt=de", files=file).status_code == 422


def test_fields_of_newer_clients_are_ignored(server: RunningServer) -> None:
    chat = {"model": "writer", "prompt": "A", "max_tokens": 1, "user": "a", "store": False, "stream_options": None}
    with server.client() as client:
        assert client.post("/v1/completions", json=chat | {"top_logprobs": 0}).status_code == 200
        assert client.post("/translate", json={"q": "A", "target": "de", "secret": "x"}).status_code == 200


def test_path_with_a_slash_at_its_end_is_not_redirected(server: RunningServer) -> None:
    with server.client() as client:
        for path in ("/translate/", "/health/", "/v1/models/writer/"):
            answer = client.get(path, headers={"Host": "localhost"})
            assert (answer.status_code, answer.headers.get("location")) == (404, None)


def test_refusals_are_logged_without_secrets(start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = add_key(tmp_path / "keys.txt", "alice")
    server = start(keys_file=tmp_path / "keys.txt", requests_per_minute=1, limits={"body_bytes": 100})
    caplog.set_level(logging.INFO, "regard.serve")
    caplog.clear()
    with server.client() as client:
        client.post("/translate", json={"q": "A private text.", "api_key": "guess-1"})
        client.get("/secret-path?api_key=guess-2", headers={"Authorization": "Bearer guess-3"})
        client.post("/translate", headers={"Origin": "null"})
        post_large(server, "/translate")
        for _ in range(2):
            client.get("/health", headers={"Authorization": f"Bearer {key}"})
    server.server.should_exit = True  # the line of the last request is written after its response
    server.thread.join(60)
    records: list[Any] = [record for record in caplog.records if record.getMessage() == "request"]
    outcomes = [(record.status, getattr(record, "refusal", None)) for record in records]
    assert outcomes == [(401, "key"), (401, "key"), (403, "host"), (413, "body"), (200, None), (429, "rate")]
    assert records[-1].key == "alice"
    lines = "\n".join(Formatter(form).format(record) for record in records for form in ("text", "json"))
    for secret in (key, "guess", "private", "secret", "null"):
        assert secret not in lines
    assert "refusal=key" in lines


def test_metrics_have_no_names_of_keys(start: Start, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.txt", "alice")
    server = start(keys_file=tmp_path / "keys.txt", open_routes=("/metrics",))
    with server.client() as client:
        client.get("/health", headers={"Authorization": f"Bearer {key}"})
        text = client.get("/metrics").text
    assert "request_success" in text
    assert "alice" not in text


def test_log_escapes_control_characters_and_keeps_the_lines_of_a_traceback() -> None:
    try:
        raise ValueError("wrong\x1b[2J\r")
    except ValueError as error:
        fields: dict[str, Any] = {"route": "a\nb", "exc_info": error}
        record = logging.makeLogRecord({"msg": "one\n%s", "args": ("\x1b[31mtwo",), "levelname": "INFO", **fields})
        record.exc_info = (type(error), error, error.__traceback__)
    line, *traceback = Formatter("text").format(record).split("\n")
    assert line.endswith("INFO  one⏎\\x1b[31mtwo  route=a⏎b")
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1] == "ValueError: wrong\\x1b[2J\\r"
    assert json.loads(Formatter("json").format(record))["route"] == "a\nb"


def test_full_queue_is_logged_once_per_second(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    server = start()
    caplog.set_level(logging.INFO, "regard.serve")
    batcher = server.state.models["en-de"].batcher
    batcher._max_waiting = 0
    with server.client() as client:
        codes = {client.post("/translate", json={"q": "A"}).status_code for _ in range(3)}
    assert codes == {429}
    server.state._log_early_refusals()
    lines = [record.getMessage() for record in caplog.records if "the queue is full: " in record.getMessage()]
    assert sum(int(line.split(": ")[1]) for line in lines) == 3
