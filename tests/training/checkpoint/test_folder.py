"""Checkpoints are complete or absent, verified, and the last intact one is never removed."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.base.errors import DamagedError, RegardError
from regard.base.files import write_manifest
from regard.store.run_folder import RunFolder
from regard.store.weights import save_tensors
from regard.training.checkpoint.folder import Checkpoint, Checkpoints


def make_checkpoint(step: int) -> Checkpoint:
    weights = {"w": torch.full((3,), float(step)), "b": torch.arange(2.0)}
    return Checkpoint(weights, {"step/w": torch.tensor(float(step))}, {}, {"progress": {"step": step}})


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def checkpoints(tmp_path: Path, warnings: list[str]) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints", warnings.append)


def test_what_was_saved_comes_back(checkpoints: Checkpoints) -> None:
    path = checkpoints.save(7, make_checkpoint(7))
    assert sorted(file.name for file in path.iterdir()) == [
        "ema.safetensors", "manifest.json", "model.safetensors", "optimizer.safetensors", "state.json",
    ]  # fmt: skip
    newest = checkpoints.load_newest()
    assert newest is not None
    step, checkpoint = newest
    assert step == 7
    assert checkpoint.weights["w"].tolist() == [7.0] * 3
    assert checkpoint.optimizer["step/w"].item() == 7
    assert checkpoint.ema == {}
    assert checkpoints.load_newest_state() == checkpoint.state == {"progress": {"step": 7}}


def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (Checkpoints(tmp_path / name, print).save(3, make_checkpoint(3)) for name in ("a", "b"))
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_there_is_none_before_the_first(checkpoints: Checkpoints) -> None:
    assert checkpoints.load_newest() is None
    assert checkpoints.load_newest_state() is None


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "ema.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_passed_over_loudly(checkpoints: Checkpoints, warnings: list[str], name: str) -> None:
    checkpoints.save(1, make_checkpoint(1))
    path = checkpoints.save(2, make_checkpoint(2)) / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    newest = checkpoints.load_newest()
    assert newest is not None
    assert newest[0] == 1
    assert len(warnings) == 1
    assert "step-00000002" in warnings[0]
    assert name in warnings[0]
    for read in (checkpoints.load, checkpoints.load_state, checkpoints.load_weights):
        with pytest.raises(DamagedError):
            read(2)
    assert checkpoints.intact_steps([1, 2]) == [1]
    checkpoints.set_aside_after(1)
    assert checkpoints.steps() == [1]
    assert (checkpoints.folder / "step-00000002.damaged").is_dir()


def test_a_checkpoint_without_tensors_is_passed_over(checkpoints: Checkpoints, warnings: list[str]) -> None:
    checkpoints.save(1, make_checkpoint(1))
    path = checkpoints.save(2, make_checkpoint(2))
    for file in (*path.glob("*.safetensors"), path / "manifest.json"):
        file.unlink()
    write_manifest(path)
    newest = checkpoints.load_newest()
    assert newest is not None
    assert newest[0] == 1
    assert "holds no tensors" in warnings[0]


def test_when_all_are_damaged_nothing_starts_anew_silently(checkpoints: Checkpoints) -> None:
    (checkpoints.save(1, make_checkpoint(1)) / "manifest.json").unlink()
    with pytest.raises(RegardError, match="No intact checkpoint is left"):
        checkpoints.load_newest()


def test_the_newest_of_some_is_found(checkpoints: Checkpoints) -> None:
    for step in (1, 2, 3):
        checkpoints.save(step, make_checkpoint(step))
    newest = checkpoints.load_newest([2, 1])
    assert newest is not None
    assert newest[0] == 2
    assert checkpoints.load_newest([]) is None


def test_rotation_keeps_what_is_asked_for_and_always_the_newest(checkpoints: Checkpoints) -> None:
    for step in (1, 2, 3, 4):
        checkpoints.save(step, make_checkpoint(step))
    checkpoints.rotate({2})
    assert checkpoints.steps() == [2, 4]
    checkpoints.rotate(set())
    assert checkpoints.steps() == [4]


def test_run_folder_lock_removes_what_kills_left(checkpoints: Checkpoints) -> None:
    run_folder = RunFolder(checkpoints.folder.parent)
    first = checkpoints.save(1, make_checkpoint(1))
    checkpoints.save(2, make_checkpoint(2)).rename(checkpoints.folder / "step-00000002.gone")  # killed while removing
    for path in (checkpoints.folder / "step-00000003", run_folder.best, run_folder.tokenizer):
        path.with_name(f"{path.name}.tmp").mkdir()  # killed while writing
    first.rename(checkpoints.folder / "step-00000001.old")  # killed while replacing
    assert checkpoints.steps() == []
    with run_folder.lock():
        assert checkpoints.steps() == [1]
    names = sorted(str(path.relative_to(run_folder.path)) for path in run_folder.path.rglob("*") if path.is_dir())
    assert names == ["checkpoints", "checkpoints/step-00000001"]


def test_a_checkpoint_of_the_same_step_is_replaced(checkpoints: Checkpoints) -> None:
    checkpoints.save(1, make_checkpoint(1))
    checkpoints.save(1, Checkpoint({"w": torch.zeros(1)}, {}, {}, {"progress": {"step": 1}, "again": True}))
    assert json.loads((checkpoints.path(1) / "state.json").read_text())["again"] is True
    assert checkpoints.steps() == [1]


def test_a_full_disk_costs_the_new_checkpoint_only(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints.save(1, make_checkpoint(1))

    def write_to_full_disk(tensors: Mapping[str, Tensor], path: Path) -> None:
        path.symlink_to("/dev/full")
        save_tensors(tensors, path)

    monkeypatch.setattr("regard.training.checkpoint.folder.save_tensors", write_to_full_disk)
    with pytest.raises(RegardError, match=r"The disk is full: .*\d bytes are needed") as caught:
        checkpoints.save(2, make_checkpoint(2))
    assert "step-00000002" in str(caught.value.location)
    assert [path.name for path in checkpoints.folder.iterdir()] == ["step-00000001"]


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_files_have_the_permissions_that_the_user_asks_for(checkpoints: Checkpoints, umask: int) -> None:
    before = os.umask(umask)
    try:
        path = checkpoints.save(1, make_checkpoint(1))
    finally:
        os.umask(before)
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in path.iterdir()} == {
        file.name: oct(0o666 & ~umask) for file in path.iterdir()
    }
