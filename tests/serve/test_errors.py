"""Errors have the form that the clients of each protocol read, and refusals are logged without secrets."""

from pathlib import Path
from typing import Any

import openai
import pytest

from regard.serve.settings import add_key
from tests.serve.factories import RunningServer, Start, post_large

JSON = {"Content-Type": "application/json"}


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
