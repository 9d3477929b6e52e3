"""Checkpoints: whole or absent, verified, never the last good one removed."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from regard.base.errors import DamagedError, RegardError
from regard.train.checkpoint import Checkpoint, Checkpoints


def made(step: int) -> Checkpoint:
    weights = {"w": torch.full((3,), float(step)), "b": torch.arange(2.0)}
    return Checkpoint(weights, {"step/w": torch.tensor(float(step))}, {}, {"progress": {"update": step}})


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def kept(tmp_path: Path, said: list[str]) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints", said.append)


def test_what_was_saved_comes_back(kept: Checkpoints) -> None:
    path = kept.save(7, made(7))
    assert sorted(one.name for one in path.iterdir()) == [
        "ema.safetensors", "manifest.json", "model.safetensors", "optimizer.safetensors", "state.json",
    ]  # fmt: skip
    found = kept.newest()
    assert found is not None
    step, checkpoint = found
    assert step == 7
    assert checkpoint.weights["w"].tolist() == [7.0] * 3
    assert checkpoint.optimizer["step/w"].item() == 7
    assert checkpoint.ema == {}
    assert kept.newest_state() == checkpoint.state == {"progress": {"update": 7}}


def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (Checkpoints(tmp_path / name, print).save(3, made(3)) for name in ("a", "b"))
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_there_is_none_before_the_first(kept: Checkpoints) -> None:
    assert kept.newest() is None
    assert kept.newest_state() is None


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "ema.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_passed_over_loudly(kept: Checkpoints, said: list[str], name: str) -> None:
    kept.save(1, made(1))
    path = kept.save(2, made(2)) / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    found = kept.newest()
    assert found is not None
    assert found[0] == 1
    assert len(said) == 1
    assert "step-00000002" in said[0]
    assert name in said[0]
    for reading in (kept.load, kept.state, kept.weights):
        with pytest.raises(DamagedError):
            reading(2)
    assert kept.whole([1, 2]) == [1]
    kept.set_aside_after(1)
    assert kept.steps() == [1]
    assert (kept.folder / "step-00000002.damaged").is_dir()


def test_when_all_are_damaged_nothing_starts_anew_silently(kept: Checkpoints) -> None:
    (kept.save(1, made(1)) / "manifest.json").unlink()
    with pytest.raises(RegardError, match="None of the 1 checkpoints is whole"):
        kept.newest()


def test_the_newest_of_some_is_found(kept: Checkpoints) -> None:
    for step in (1, 2, 3):
        kept.save(step, made(step))
    found = kept.newest([2, 1])
    assert found is not None
    assert found[0] == 2
    assert kept.newest([]) is None


def test_rotation_keeps_what_is_asked_for_and_always_the_newest(kept: Checkpoints) -> None:
    for step in (1, 2, 3, 4):
        kept.save(step, made(step))
    kept.rotate({2})
    assert kept.steps() == [2, 4]
    kept.rotate(set())
    assert kept.steps() == [4]


def test_what_kills_left_half_done_is_mended(kept: Checkpoints) -> None:
    first = kept.save(1, made(1))
    kept.save(2, made(2)).rename(kept.folder / "step-00000002.gone")  # killed while removing
    for step in (3, 9):
        (kept.folder / f"step-0000000{step}.tmp").mkdir()  # killed while writing; 9 is not written again
    first.rename(kept.folder / "step-00000001.old")  # killed while replacing
    again = Checkpoints(kept.folder, print)
    assert again.steps() == [1]
    again.save(3, made(3))
    again.rotate({1})
    assert sorted(path.name for path in kept.folder.iterdir()) == ["step-00000001", "step-00000003"]


def test_a_checkpoint_of_the_same_step_is_replaced(kept: Checkpoints) -> None:
    kept.save(1, made(1))
    kept.save(1, Checkpoint({"w": torch.zeros(1)}, {}, {}, {"progress": {"update": 1}, "again": True}))
    assert json.loads((kept.path(1) / "state.json").read_text())["again"] is True
    assert kept.steps() == [1]


def test_a_full_disk_costs_the_new_checkpoint_only(kept: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.save(1, made(1))

    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(RegardError, match=r"The disk is full: .*\d bytes are needed") as caught:
        kept.save(2, made(2))
    assert "step-00000002" in str(caught.value.where)
    assert [path.name for path in kept.folder.iterdir()] == ["step-00000001"]
    monkeypatch.setattr("safetensors.torch.save_file", lambda *_, **__: (_ for _ in ()).throw(SafetensorError("odd")))
    with pytest.raises(SafetensorError, match="odd"):
        kept.save(2, made(2))
