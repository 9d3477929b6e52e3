"""Commands export a model to CTranslate2 once, when it pays, and otherwise run it in PyTorch and say why."""

import json
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.exchange import engine_cache, parity
from regard.exchange.engine_cache import MIN_SENTENCES, load_on_engine
from regard.store.export_folder import Engine, cache_folder, hash_of_weights, read_export_info
from tests.tasks.factories import write_translator

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parity, "TEXTS", 2)
    return write_translator(tmp_path / "m")


def load(folder: Path, engine: Engine = "auto", **options: Any) -> list[str]:
    """Load a model; return the name of its engine, and the lines for the user."""
    lines: list[str] = []
    pipeline = load_on_engine(folder, engine, lambda: nullcontext(lines.append), **options)
    return [pipeline.engine_name, *lines]


def test_model_is_exported_once_and_again_when_its_weights_change(folder: Path) -> None:
    engine, line = load(folder)
    assert engine == "ctranslate2"
    assert "parity passed" in line
    assert str(cache_folder(folder, "auto")) in line
    assert "--engine torch" in line
    assert load(folder) == ["ctranslate2"]
    shutil.rmtree(folder)
    write_translator(folder, seed=2)
    assert load(folder, sentences=1) == ["torch"]
    assert [len(load(folder)), *load(folder)] == [2, "ctranslate2"]
    assert read_export_info(cache_folder(folder, "auto")).weights == hash_of_weights(folder)
    assert [path.name for path in cache_folder(folder, "auto").parent.iterdir()] == ["float32"]


def test_int8_says_what_it_loses(folder: Path) -> None:
    engine, line = load(folder, "ctranslate2-int8")
    assert engine == "ctranslate2-int8"
    assert "of 2 random ids translated as in PyTorch" in line
    assert load(folder, "ctranslate2-int8") == ["ctranslate2-int8"]
    assert load(folder, sentences=1) == ["torch"]  # `auto` runs no export that rounds the weights


def test_few_sentences_and_torch_write_nothing(folder: Path) -> None:
    assert load(folder, sentences=MIN_SENTENCES - 1) == ["torch"]
    assert load(folder, "torch") == ["torch"]
    assert [path.name for path in folder.parent.iterdir()] == ["m"]
    assert load(folder, "ctranslate2", sentences=1)[0] == "ctranslate2"  # the user asked for it
    assert load(folder, sentences=1) == ["ctranslate2"]  # few sentences use an export
    assert load(folder, "torch") == ["torch"]


def test_models_that_do_not_fit_and_a_missing_package_run_in_torch(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = write_translator(tmp_path / "window", **{"encoder.window": 8})
    assert load(window) == ["torch"]
    with pytest.raises(RegardError, match=r"encoder\.window"):
        load(window, "ctranslate2")
    monkeypatch.setattr("regard.store.export_folder.find_module", lambda _: None)
    monkeypatch.setattr("regard.base.extras.find_spec", lambda _: None)
    assert load(folder) == ["torch"]


def test_folder_that_cannot_be_written_runs_in_torch(folder: Path) -> None:
    cache_folder(folder, "auto").parent.write_text("a file, not a folder")
    engine, line = load(folder)
    assert engine == "torch"
    assert "File exists" in line
    with pytest.raises(OSError, match="File exists"):
        load(folder, "ctranslate2")


def test_failed_parity_is_reported_and_not_tried_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(parity, "TOLERANCE", -1.0)
        engine, line = load(folder)
    assert engine == "torch"
    assert "differs from the model" in line
    with monkeypatch.context() as patch:
        patch.setattr(engine_cache, "export_model", lambda *_, **__: pytest.fail("exported again"))
        engine, line = load(folder)
        assert engine == "torch"
        assert "differs from the model" in line
        assert "remove" in line
        with pytest.raises(RegardError, match="differs from the model"):
            load(folder, "ctranslate2")
    cache_folder(folder, "auto").with_name("float32.failed.json").unlink()
    assert load(folder)[0] == "ctranslate2"


def test_damaged_export_is_made_again(folder: Path) -> None:
    load(folder)
    for name in ("model.bin", "export.json"):
        path = cache_folder(folder, "auto") / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        assert len(load(folder)) == 2  # announced again
    assert load(folder) == ["ctranslate2"]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What processes leave behind that are killed while they export, and two that export at once."""
    folders = [write_translator(tmp_path_factory.mktemp("models") / name) for name in ("killed", "shared")]
    command = [sys.executable, "-m", "tests.exchange.export_processes", *map(str, folders)]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603
    result: dict[str, Any] = json.loads(output)
    return result


def test_process_killed_while_exporting_leaves_no_broken_export(processes: dict[str, Any]) -> None:
    assert len(processes["killed"]) > 5
    assert processes["killed"][0] == "none"
    assert processes["left"] == ["float32"]


def test_two_processes_at_once_make_one_export(processes: dict[str, Any]) -> None:
    first, second = processes["together"]
    assert first[0] == second[0] == "ctranslate2"
    assert len(first) + len(second) == 3  # one of them announced an export
