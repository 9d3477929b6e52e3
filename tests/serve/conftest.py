"""A real server on this machine, with three small models."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from regard.config.finetune import AdapterConfig, LoraConfig
from regard.lora import add_adapters, is_adapter
from regard.serve.settings import ServeConfig, hash_key
from regard.store.adapter_folder import write_adapter
from regard.store.export_folder import hash_of_weights
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from regard.text.chat_template import CHAT_TEMPLATE_FILE
from tests.serve.factories import KEY, TEMPLATE, RunningServer, run_in_thread
from tests.tasks.factories import (
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_parts,
    make_tokenizers,
    make_translator_settings,
)
from tests.tasks.media_models import write_audio_model, write_image_model, write_transcription_model


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
        sha256 = hash_of_weights(folders[parent])
        settings = AdapterConfig(parent=parent, parent_sha256=sha256, lora=LoraConfig(rank=2))
        files = {CHAT_TEMPLATE_FILE: b"Poem: {{ messages[0].content }}"} if name == "poet" else {}
        write_adapter(place / name / "adapter", settings, tensors, files)
    return {name: place / name for name in parents}


@pytest.fixture(scope="package")
def server(folders: dict[str, Path]) -> Iterator[RunningServer]:
    """A server with both models and, except for the engine, the default settings."""
    template = folders["writer"].with_name("chat.jinja")
    with run_in_thread(ServeConfig(models=folders, chat_templates={"writer": template}, engine="torch")) as running:
        yield running


@pytest.fixture
def start(folders: dict[str, Path]) -> Iterator[Callable[..., RunningServer]]:
    """A function that starts a server with other settings; it ends with the test."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(
            run_in_thread(ServeConfig(**{"models": folders, "engine": "torch"} | changes))
        )


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.txt"
    path.write_text(f"# keys\nalice {hash_key(KEY)}\n")
    return path


@pytest.fixture(scope="module")
def media_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("media")
    head = {"kind": "classes", "labels": ["good", "bad"], "pool": "first", "hidden": False}
    classifier, settings = make_parts(task="text_classification", head=head)
    write_model(folder / "moods", settings, make_tokenizers(), get_weights(classifier), "card")
    return {
        "shapes": write_image_model(folder / "shapes"),
        "tones": write_audio_model(folder / "tones"),
        "speech": write_transcription_model(folder / "speech"),
        "moods": folder / "moods",
    }


@pytest.fixture(scope="module")
def media_server(media_folders: dict[str, Path]) -> Iterator[RunningServer]:
    with run_in_thread(ServeConfig(models=media_folders)) as running:
        yield running
