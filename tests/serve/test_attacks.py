"""Attacks on a running server: each fails, and other clients are served."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from regard.text.chat_template import ChatTemplate
from tests.serve.conftest import TEMPLATE, RunningServer

Start = Callable[..., RunningServer]
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
