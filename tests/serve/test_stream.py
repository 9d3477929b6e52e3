"""Streams that cannot start."""

import threading
from collections.abc import Iterator

import httpx
import pytest

from tests.serve.factories import Start


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
