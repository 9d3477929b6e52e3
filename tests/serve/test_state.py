"""Reloads of a model."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.serve.loaded import load_model
from regard.serve.settings import add_key
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.load import load
from tests.serve.factories import REQUEST, RunningServer, Start, wait_until
from tests.tasks.factories import make_encoder_decoder, make_tokenizers, make_translator_settings


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
    from tests.serve.factories import find_app

    return find_app(server.server.config.loaded_app).state.server


def test_a_model_is_replaced_without_a_lost_request(start: Start) -> None:
    """Texts, streams and files of many sentences, which outlast several reloads."""
    server = start()
    file = {"file": ("a.txt", b"Two men.\n" * 50)}
    stream = REQUEST | {"q": "One. Two. Three. Four.", "stream": True, "beam_size": 1}

    def ask(number: int) -> tuple[int, bool]:
        with server.client() as client:
            if number % 10 == 0:
                response = client.post("/translate_file", files=file)
                file_url = response.json()["translatedFileUrl"]
                return response.status_code, client.get(file_url).text.count("\n") == 50
            if number % 2 == 0:
                response = client.post("/translate", json=stream)
                return response.status_code, response.text.endswith("data: [DONE]\n\n") and "error" not in response.text
            response = client.post("/translate", json=REQUEST)
            return response.status_code, bool(response.json()["translatedText"])

    with ThreadPoolExecutor(6) as pool, server.client() as client:
        answers = [pool.submit(ask, number) for number in range(40)]
        for _ in range(5):
            assert client.post("/reload/en-de").raise_for_status().json() == {"status": "reloaded"}
        assert client.post("/reload/none").status_code == 404
        assert [answer.result() for answer in answers] == [(200, True)] * 40


def test_reload_of_a_link_switches_to_another_model_without_a_lost_request(
    start: Start, folders: dict[str, Path], tmp_path: Path
) -> None:
    """As after `regard tune --suggestions`: `ln -sfn better current`, then a reload."""
    settings, other = make_translator_settings(languages=["en", "de"]), tmp_path / "other"
    negated = {name: -tensor for name, tensor in get_weights(make_encoder_decoder(settings)).items()}
    write_model(other, settings, make_tokenizers(), negated, "card")
    texts = [load(folder, task="translation").translate([REQUEST["q"]])[0].text for folder in (folders["en-de"], other)]
    assert texts[0] != texts[1]
    link, new_link = tmp_path / "current", tmp_path / "new"
    link.symlink_to(folders["en-de"])
    server = start(models={"en-de": link})

    def ask(_: int) -> str:
        with server.client() as client:
            return str(client.post("/translate", json=REQUEST).raise_for_status().json()["translatedText"])

    with ThreadPoolExecutor(6) as pool, server.client() as client:
        answers = [pool.submit(ask, number) for number in range(40)]
        assert answers[0].result() == texts[0]
        new_link.symlink_to(other)
        new_link.replace(link)
        client.post("/reload/en-de").raise_for_status()
        assert {answer.result() for answer in answers} <= set(texts)
    assert ask(0) == texts[1]


def test_reload_aborted_clients_hold_one_extra_model_copy(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server, may_end, loads = start(), threading.Event(), list[int]()
    original = load_model

    def load(*arguments: Any) -> Any:
        loads.append(1)
        assert may_end.wait(60)
        return original(*arguments)

    monkeypatch.setattr("regard.serve.model.load_model", load)
    served = server.state.models["writer"]
    before = served.pipeline
    try:
        for _ in range(40):
            with closing(socket.create_connection(("127.0.0.1", server.port))) as connection:
                connection.sendall(b"POST /reload/writer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
                wait_until(lambda: len(loads) == 1)
        with server.client() as client:
            refused = client.post("/reload/en-de")
            assert (refused.status_code, refused.headers["retry-after"]) == (409, "5")
            assert len(loads) == 1
            may_end.set()
            wait_until(lambda: served.pipeline is not before)  # the reload goes on without its client
            wait_until(lambda: client.post("/reload/writer").status_code == 200)
            assert len(loads) == 2
    finally:
        may_end.set()


def test_reload_needs_a_key_that_is_named(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    names = {name: {"Authorization": f"Bearer {add_key(path, name)}"} for name in ("alice", "operator")}
    server = start(keys_file=path, reload_keys=("operator",), open_routes=("/reload/writer",))
    with server.client() as client:
        assert client.post("/reload/writer").status_code == 403
        assert client.post("/reload/en-de").status_code == 401
        assert client.post("/reload/en-de", headers=names["alice"]).status_code == 403
        assert client.get("/reload/en-de", headers=names["alice"]).status_code == 403
        assert client.post("/reload/en-de", headers=names["operator"]).status_code == 200
    with pytest.raises(RegardError, match="unknown key: 'operater'"):
        start(keys_file=path, reload_keys=("operater",))


def test_reload_through_a_proxy_needs_a_key(server: RunningServer) -> None:
    with server.client() as client:
        assert client.post("/reload/writer", headers={"X-Forwarded-For": "127.0.0.1"}).status_code == 403
