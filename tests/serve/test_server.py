"""The log, start and end of the server."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from regard.base.errors import RegardError
from regard.serve.server import Formatter, check_port
from regard.serve.settings import add_key
from tests.serve.factories import REQUEST, Start, post_large


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


def test_port_in_use_is_an_error_before_models_are_loaded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(RegardError, match=f"Cannot listen on port {port} of 127.0.0.1"):
            check_port("127.0.0.1", port)
    check_port("127.0.0.1", 0)


def test_failed_start_is_one_line_of_the_log(folders: dict[str, Path], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "regard", "serve", str(folders["writer"]), "--port", "0"]
    command += ["--adapter", f"law={tmp_path}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 3
    assert f"ERROR  {tmp_path}: This folder contains no adapter. An adapter folder contains" in result.stderr
    assert "Traceback" not in result.stderr


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
                # There is no TLS: reading certificates takes 80 ms.
                return httpx.post(f"{url}/translate", json=REQUEST, timeout=30, verify=False).status_code  # noqa: S501
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
