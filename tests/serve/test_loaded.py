"""Models and adapters that are not served."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.exchange import parity
from regard.serve.loaded import assign_adapters, load_model
from regard.serve.settings import ServeConfig, read_settings
from tests.tasks.media_models import (
    write_audio_model,
    write_captioning_model,
    write_image_model,
    write_transcription_model,
)


def test_an_adapter_that_cannot_be_served_is_refused(folders: dict[str, Path], adapters: dict[str, Path]) -> None:
    environment = {"REGARD_SERVE_ADAPTERS__LAW": str(adapters["law"])}
    settings = read_settings(None, environment, ["engine=ctranslate2"], {"models": {"en-de": folders["en-de"]}})
    assert settings.adapters == {"law": adapters["law"]}
    with pytest.raises(RegardError, match="CTranslate2 does not support adapters") as error:
        assign_adapters(settings)
    assert f"law={adapters['law']}" in str(error.value.hint)
    with pytest.raises(RegardError, match="'law' does not match the weights of writer") as error:
        assign_adapters(ServeConfig(models={"writer": folders["writer"]}, adapters={"law": adapters["law"]}))
    assert "en-de" in str(error.value.hint)
    with pytest.raises(RegardError, match="have the name 'en-de'"):
        assign_adapters(ServeConfig(models=folders, adapters={"en-de": adapters["law"]}))


@pytest.mark.parametrize(
    "write", [write_image_model, write_audio_model, write_transcription_model, write_captioning_model]
)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_damaged_model_is_not_served(tmp_path: Path, write: Callable[..., Path], value: float) -> None:
    with pytest.raises(RegardError, match="not numbers"):
        load_model(write(tmp_path / "model", fill=value), "torch", {})


def test_server_exports_a_translation_model_at_its_first_start(
    folders: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parity, "TEXTS", 3)
    caplog.set_level("INFO", "regard.serve")
    for name, engines in (("en-de", ["ctranslate2", "ctranslate2"]), ("writer", ["torch"])):
        folder = shutil.copytree(folders[name], tmp_path / name)
        assert [load_model(folder, "auto", {}).pipeline.engine_name for _ in engines] == engines
    assert [record.getMessage().split()[0] for record in caplog.records] == ["Exporting", "Exported"]
