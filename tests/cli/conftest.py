"""A small corpus in the working folder."""

from pathlib import Path

import pytest

from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.cli.factories import WORDS, write_lines
from tests.tasks.factories import make_decoder_only, make_generator_settings, make_tokenizers


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [" ".join(WORDS[(n * k) % len(WORDS)] for k in range(1, 6)) + f" {n}" for n in range(200)]
    write_lines("a.en", rows)
    write_lines("a.de", [row.upper() for row in rows])
    write_lines("short.de", rows[:150])
    write_lines("five.en", rows[:5])
    write_lines("five.de", rows[:5])
    write_lines("book.txt", rows)
    Path("empty.en").touch()
    Path("empty.de").touch()
    Path("picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x01")
    Path("latin.txt").write_bytes("Übung\n".encode("latin-1") * 50)
    Path("full").mkdir()
    Path("full/something").touch()
    Path("broken.toml").write_text("[model\n", encoding="utf-8")
    monkeypatch.setattr("regard.training.autotune.seconds_per_step", lambda *_, **__: 0.25)
    return tmp_path


@pytest.fixture(scope="module")
def generator_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("generate") / "model"
    settings = make_generator_settings()
    write_model(path, settings, make_tokenizers(), get_weights(make_decoder_only(settings)), "card")
    return str(path)
