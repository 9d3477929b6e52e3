from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.exchange import parity, parity_samples
from regard.exchange.web.write import RUNTIME_FILES
from regard.store.model_folder import StoredModel
from tests.exchange.ctranslate2_models import make_encoder_decoder, make_stored_model


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Use one thread: on such small tensors threads wait for each other (15 ms for a layer norm on a busy machine)."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="module")
def _few_texts() -> Iterator[None]:
    """Prove exports with twelve short texts instead of 200: the models are small and random, and hardly ever end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parity, "TEXTS", 12)
        patch.setattr(parity_samples, "MAX_TOKENS", 32)
        yield


@pytest.fixture
def one_short_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prove with one short text: there are many exports."""
    monkeypatch.setattr(parity, "TEXTS", 1)
    monkeypatch.setattr(parity_samples, "MAX_TOKENS", 8)


@pytest.fixture
def stored(tmp_path: Path) -> StoredModel:
    return replace(make_stored_model(make_encoder_decoder()), path=tmp_path / "model")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the names of onnxruntime-web's files: the export copies them as they are."""
    folder = tmp_path_factory.mktemp("onnxruntime-web")
    (folder / "dist").mkdir()
    for name in RUNTIME_FILES:
        (folder / "dist" / name).write_text(name)
    return folder
