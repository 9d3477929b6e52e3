"""Large weights are stored as several files with an index, and read like a single file."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from regard.base.errors import DamagedError
from regard.store.export_folder import hash_of_weights
from regard.store.model_folder import read_model, set_languages, write_model
from regard.store.weight_files import INDEX, find_weights, load_weights, save_weights
from regard.store.weights import get_weights

TRANSLATOR = Path(__file__).with_name("format-1") / "translator"


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder with several files of weights."""
    monkeypatch.setattr("regard.store.weight_files.FILE_BYTES", 10_000)
    stored = read_model(TRANSLATOR)
    write_model(tmp_path / "model", stored.settings, stored.tokenizers, get_weights(stored.model), "# Card\n")
    return tmp_path / "model"


def test_model_of_several_files_is_read(parts: Path) -> None:
    assert len(find_weights(parts)) > 2
    assert not (parts / "model.safetensors").exists()
    whole, loaded = (get_weights(read_model(folder).model) for folder in (TRANSLATOR, parts))
    assert whole.keys() == loaded.keys()
    assert all(torch.equal(whole[name], loaded[name]) for name in whole)


def test_hash_covers_all_files(parts: Path) -> None:
    stored, before = read_model(parts), hash_of_weights(parts)
    for file in find_weights(parts):
        weights = load_weights(parts)
        weights[min(load_names(file))] += 1
        write_model(parts, stored.settings, stored.tokenizers, weights, "# Card\n", replace=True)
        assert hash_of_weights(parts) != before
        before = hash_of_weights(parts)


def test_languages_of_such_a_model_can_be_changed(parts: Path) -> None:
    before = hash_of_weights(parts)
    set_languages(parts, ["en", "fr"])
    assert hash_of_weights(parts) == before
    assert getattr(read_model(parts).settings, "languages") == ("en", "fr")  # noqa: B009 - only of translators


def test_missing_part_is_reported(parts: Path) -> None:
    missing = find_weights(parts)[1]
    missing.unlink()
    with pytest.raises(DamagedError, match=f"{missing.name} is missing"):
        read_model(parts)


def make_weights() -> dict[str, Tensor]:
    shapes = {"a": (30,), "b": (10, 10), "c": (20,), "d": (5,), "e": (5,)}
    return {name: torch.randn(shape) for name, shape in shapes.items()}


def test_large_weights_are_several_files_with_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.store.weight_files.FILE_BYTES", 4 * 50)
    weights = make_weights()
    save_weights(weights, tmp_path)
    names = [path.name for path in find_weights(tmp_path)]
    assert names == [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    contents = [load_names(tmp_path / name) for name in names]
    assert contents == [{"a"}, {"b"}, {"c", "d", "e"}], "a tensor above the limit has a file of its own"
    index = json.loads((tmp_path / INDEX).read_text(encoding="utf-8"))
    assert index["metadata"] == {"total_size": 4 * 160}
    assert index["weight_map"] == {name: file for file, held in zip(names, contents, strict=True) for name in held}
    loaded = load_weights(tmp_path)
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)


def load_names(path: Path) -> set[str]:
    with safe_open(path, "pt") as file:
        return set(file.keys())


def test_small_weights_are_one_file(tmp_path: Path) -> None:
    save_weights(make_weights(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
