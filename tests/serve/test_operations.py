"""A server under load, at its end, and while a model is replaced: nothing that was accepted is lost."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from regard.base.errors import ConfigError
from regard.pipeline.load import load_translator
from regard.serve.settings import add_key, hash_key, read_keys, read_settings
from tests.serve.conftest import RunningServer

Start = Callable[..., RunningServer]
REQUEST = {"q": "Two young men are outside.", "source": "en", "target": "de"}


def test_health_readiness_and_request_ids(server: RunningServer) -> None:
    with server.client() as client:
        assert client.get("/health").json() == {"status": "ok"}
        first, second = client.get("/ready"), client.get("/ready")
    assert first.json() == {"status": "ready"}
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


def test_the_openapi_description_has_every_route(server: RunningServer) -> None:
    with server.client() as client:
        paths = client.get("/openapi.json").raise_for_status().json()["paths"]
    assert {"/translate", "/languages", "/detect", "/v1/completions", "/v1/embeddings", "/metrics"} <= set(paths)
    assert paths["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]["q"]


def test_many_clients_get_their_own_text(server: RunningServer, folders: dict[str, Path]) -> None:
    texts = [f"Two young men {number}" for number in range(12)]
    expected = [translation.text for translation in load_translator(folders["en-de"]).translate(texts)]

    def ask(index: int) -> tuple[int, str]:
        with server.client() as client:
            request = REQUEST | {"q": texts[index % len(texts)]}
            return index, client.post("/translate", json=request).raise_for_status().json()["translatedText"]

    with ThreadPoolExecutor(16) as pool:
        for index, text in pool.map(ask, range(60)):
            assert text == expected[index % len(texts)]


def test_an_overloaded_server_refuses_at_once_and_loses_nothing(start: Start) -> None:
    server = start(queue={"max_waiting": 4, "batch_texts": 1})

    def ask(_: int) -> tuple[int, str | None]:
        with server.client() as client:
            response = client.post("/translate", json=REQUEST)
            return response.status_code, response.headers.get("retry-after")

    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(ask, range(96)))
    codes = [code for code, _ in answers]
    assert set(codes) == {200, 429}
    assert all(retry is not None for code, retry in answers if code == 429)
    with server.client() as client:
        assert client.post("/translate", json=REQUEST).status_code == 200


def test_clients_that_leave_free_their_place(start: Start) -> None:
    server = start()
    request = {"model": "writer", "prompt": "Two", "max_tokens": 1000, "stream": True, "temperature": 1}

    async def leave(after: int) -> None:
        async with (
            httpx.AsyncClient(base_url=server.url) as client,
            client.stream("POST", "/v1/completions", json=request) as response,
        ):
            parts = response.aiter_bytes()
            for _ in range(after):
                await anext(parts, b"")

    async def run() -> None:
        await asyncio.gather(*(leave(number % 3) for number in range(20)))

    asyncio.run(run())
    with server.client() as client:
        end = time.monotonic() + 20
        while (text := client.get("/metrics").text) and 'num_requests_running{model="writer"} 0.0' not in text:
            assert time.monotonic() < end, text
            time.sleep(0.05)


def test_a_model_is_replaced_without_a_lost_request(start: Start) -> None:
    """Texts, streams and files of many sentences, which outlast several reloads."""
    server = start()
    file = {"file": ("a.txt", b"Two men.\n" * 150)}
    stream = REQUEST | {"q": "One. Two. Three. Four.", "stream": True, "beam_size": 1}

    def ask(number: int) -> tuple[int, bool]:
        with server.client() as client:
            if number % 10 == 0:
                response = client.post("/translate_file", files=file)
                return response.status_code, response.text.count("\n") == 150
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


def test_threads_may_share_a_translator(folders: dict[str, Path]) -> None:
    translator = load_translator(folders["en-de"])
    texts = [f"Two young men {number}" for number in range(12)]
    expected = [translation.text for translation in translator.translate(texts, max_length=8)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda number: translator.translate(texts[number % 12], max_length=8).text, range(192)))
    assert sum(text == expected[number % 12] for number, text in enumerate(results)) == 192


def test_settings_come_from_a_file_the_environment_and_options(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    path.write_text('port = 1\n[models]\na = "folder"\n[limits]\ntexts = 3\nn = 2\n')
    environment = {"REGARD_SERVE_PORT": "2", "REGARD_SERVE_LIMITS__TEXTS": "5", "OTHER": "x"}
    settings = read_settings(path, environment, ["limits.n=4"], {"host": "::1"})
    assert (settings.port, settings.limits.texts, settings.limits.n, settings.host) == (2, 5, 4, "::1")
    with pytest.raises(ConfigError):
        read_settings(path, {"REGARD_SERVE_NONSENSE": "1"}, [], {})
    with pytest.raises(ConfigError):
        read_settings(None, {}, [], {})  # no model


def test_new_keys_are_stored_as_hashes(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    keys = [add_key(path, name) for name in ("alice", "bob")]
    assert read_keys(path) == {hash_key(keys[0]): "alice", hash_key(keys[1]): "bob"}
    assert all(key not in path.read_text() for key in keys)
    assert path.stat().st_mode & 0o77 == 0


def test_the_command_serves_drains_and_ends(
    folders: dict[str, Path], adapters: dict[str, Path], tmp_path: Path
) -> None:
    """SIGTERM under load: accepted requests are answered, and the code is 0."""
    log = tmp_path / "log.txt"
    arguments = [sys.executable, "-m", "regard", "serve", f"en-de={folders['en-de']}", "--port", "0"]
    arguments += ["--adapter", str(adapters["law"]), "--adapter", f"press={adapters['news']}"]
    with log.open("w") as file:
        process = subprocess.Popen([*arguments, "--log-format", "json"], stderr=file, env=os.environ)  # noqa: S603
    try:
        end = time.monotonic() + 90
        while "running on" not in log.read_text().lower():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end
            time.sleep(0.1)
        url = log.read_text().split("running on ")[1].split(" ")[0]
        models = httpx.get(f"{url}/v1/models", timeout=30).json()["data"]
        assert [model["id"] for model in models] == ["en-de", "law", "press"]

        def ask(_: int) -> int:
            try:
                return httpx.post(f"{url}/translate", json=REQUEST, timeout=30).status_code
            except httpx.TransportError:
                return 0  # the server takes no more connections: the system refuses or resets them

        with ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(ask, number) for number in range(80)]
            while not answers[8].done():
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            codes = [answer.result() for answer in answers]
        assert set(codes) <= {0, 200, 503}
        assert codes.count(200) >= 8
        assert process.wait(30) == 0
        requests = [line for line in log.read_text().splitlines() if '"/translate"' in line]
        assert sum('"status": 200' in line for line in requests) == codes.count(200)  # no answer was lost
    finally:
        process.kill()
        process.wait()
