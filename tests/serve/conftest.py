"""A real server on this machine, with three small models."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
import uvicorn

from regard.config.finetune import AdapterConfig, LoraConfig
from regard.lora import add_adapters, is_adapter
from regard.serve.server import make_config
from regard.serve.settings import ServeConfig
from regard.serve.state import ServerState
from regard.store.adapter_folder import write_adapter
from regard.store.export_folder import hash_of_weights
from regard.store.model_folder import WEIGHTS, read_model, write_model
from regard.store.weights import get_weights
from regard.text.chat_template import CHAT_TEMPLATE_FILE
from tests.pipeline.factories import (
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_tokenizers,
    make_translator_settings,
)
from tests.pipeline.test_embedder import make_parts

TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"


@dataclass(frozen=True)
class RunningServer:
    """A running server."""

    url: str
    server: uvicorn.Server
    thread: threading.Thread
    state: ServerState

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def client(self, **options: Any) -> httpx.Client:
        options = {"timeout": 30, "verify": False} | options  # there is no TLS: reading certificates takes 80 ms
        return httpx.Client(base_url=self.url, **options)


@pytest.fixture(scope="package")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A translator, a language model and an encoder."""
    folder = tmp_path_factory.mktemp("served")
    translator_settings = make_translator_settings(languages=["en", "de"])
    generator_settings = make_generator_settings()
    weights = get_weights(make_encoder_decoder(translator_settings))
    write_model(folder / "translator", translator_settings, make_tokenizers(), weights, "card")
    weights = get_weights(make_decoder_only(generator_settings))
    write_model(folder / "writer", generator_settings, make_tokenizers(), weights, "card")
    encoder, encoder_settings = make_parts()
    write_model(folder / "encoder", encoder_settings, make_tokenizers(), get_weights(encoder), "card")
    (folder / "chat.jinja").write_text(TEMPLATE)
    return {"en-de": folder / "translator", "writer": folder / "writer", "encoder": folder / "encoder"}


@pytest.fixture(scope="package")
def adapters(folders: dict[str, Path]) -> dict[str, Path]:
    """Two adapters of the translator, one of the language model, one of the encoder."""
    parents = {"law": "en-de", "news": "en-de", "poet": "writer", "close": "encoder"}
    place = folders["en-de"].with_name("adapters")
    for seed, (name, parent) in enumerate(parents.items()):
        model, generator = read_model(folders[parent]).model, torch.Generator().manual_seed(seed)
        add_adapters(model, LoraConfig(rank=2), seed=seed)
        tensors = {key: tensor for key, tensor in get_weights(model).items() if is_adapter(key)}
        for key in sorted(tensors):
            tensors[key] = 0.4 * torch.randn(tensors[key].shape, generator=generator)
        sha256 = hash_of_weights(folders[parent], WEIGHTS)
        settings = AdapterConfig(parent=parent, parent_sha256=sha256, lora=LoraConfig(rank=2))
        files = {CHAT_TEMPLATE_FILE: b"Poem: {{ messages[0].content }}"} if name == "poet" else {}
        write_adapter(place / name / "adapter", settings, tensors, files)
    return {name: place / name for name in parents}


@contextmanager
def run_in_thread(settings: ServeConfig) -> Iterator[RunningServer]:
    """Run uvicorn with the application in a thread, on a free port."""
    state = ServerState(settings)
    config = make_config(settings, state)
    config.port, config.timeout_graceful_shutdown = 0, 5
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 60
    while not server.started and thread.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    assert server.started
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield RunningServer(f"http://127.0.0.1:{port}", server, thread, state)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(scope="package")
def server(folders: dict[str, Path]) -> Iterator[RunningServer]:
    """A server with both models and the default settings."""
    template = folders["writer"].with_name("chat.jinja")
    with run_in_thread(ServeConfig(models=folders, chat_templates={"writer": template})) as running:
        yield running


@pytest.fixture
def start(folders: dict[str, Path]) -> Iterator[Callable[..., RunningServer]]:
    """A function that starts a server with other settings; it ends with the test."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(run_in_thread(ServeConfig(**{"models": folders} | changes)))
