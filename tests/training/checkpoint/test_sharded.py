"""Checkpoints of several ranks: equal to the bit on any number of ranks, sealed last, and never used if damaged."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from regard.base.errors import DamagedError, RegardError
from regard.base.files import FileEntry, verify, write_manifest
from regard.training.checkpoint.folder import Checkpoints
from tests.training.runs import compute_fingerprints
from tests.training.sharded_cases import hash_tensors, make_state

MODES = ("fsdp", "ddp", "hsdp", "fsdp+tensor")


@pytest.fixture(scope="module")
def folder(rank_folder: Path) -> Path:
    return rank_folder / "checkpoints"


@pytest.fixture(scope="module")
def results(rank_results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each of four ranks has seen: hashes of the tensors that it saved and loaded."""
    return [result["checkpoints"] for result in rank_results]


def test_every_number_of_ranks_loads_the_same_bits(results: list[dict[str, Any]], folder: Path) -> None:
    one = hash_tensors(make_state("one", 2))
    assert len(one) == 5 * 7 + 1
    expected = {"one": one} | {mode: results[0][f"saved by {mode}"] for mode in MODES}
    for rank, result in enumerate(results):
        loads = {name: hashes for name, hashes in result.items() if " on " in name}
        for name, hashes in loads.items():
            assert hashes == expected[name.split(" on ")[0]], f"{name}, rank {rank}"
        assert len(loads) == (25, 25, 15, 10)[rank]
    for mode, hashes in expected.items():
        newest = Checkpoints(folder / mode, print).load_newest()
        assert newest is not None
        assert hash_tensors(newest[1]) == hashes, mode


@pytest.mark.usefixtures("results")
def test_a_run_of_two_ranks_resumes_exactly(folder: Path) -> None:
    whole, paused = compute_fingerprints(folder / "whole"), compute_fingerprints(folder / "paused")
    assert whole == paused
    assert {"best/model.safetensors", "average/model.safetensors", "metrics"} < whole.keys()
    assert "checkpoint/shard-00002-model-00001-of-00001.safetensors" in whole


@pytest.mark.usefixtures("results")
def test_every_rank_writes_one_file_and_no_tensor_twice(folder: Path) -> None:
    whole = sum(tensor.nbytes for named in vars(make_state("one", 2)).values() for tensor in _tensors(named))
    for mode, ranks in (("fsdp", 2), ("ddp", 2), ("hsdp", 4), ("fsdp+tensor", 4)):
        path = folder / mode / "step-00000002"
        files = {file.name for file in path.iterdir()}
        shards = {name for name in files if name.startswith("shard-") and name.endswith(".safetensors")}
        assert files - shards == {"manifest.json", "state.json"}
        assert len(shards) == ranks
        size = 0
        for name in shards:
            with safe_open(path / name, "pt") as file:
                size += sum(file.get_tensor(key).nbytes for key in file.keys())  # noqa: SIM118 - not a dict
        assert size == whole, mode


def _tensors(named: dict[str, Any]) -> list[torch.Tensor]:
    return [value for value in named.values() if isinstance(value, torch.Tensor)]


@pytest.mark.usefixtures("results")
def test_equal_tensors_give_equal_bytes(folder: Path) -> None:
    again = folder / "survivor" / "step-00000001"  # the state of fsdp/step-00000001, in other processes' memory
    for file in (folder / "fsdp" / "step-00000001").glob("shard-*"):
        assert file.read_bytes() == (again / file.name).read_bytes()


def test_damage_and_full_disks_cost_two_ranks_one_checkpoint(results: list[dict[str, Any]]) -> None:
    for rank in (0, 1):
        result = results[rank]["survivor"]
        assert result["average"] == result["average of whole tensors"]
        assert result["rotated"] == [1, 3]
        for name, words in (("flipped", "different content (sha256)"), ("missing", "is missing")):
            step, is_equal, warnings = result[name]
            assert (step, is_equal) == (1, True)
            assert len(warnings) == 1
            assert "step-00000003" in warnings[0]
            assert words in warnings[0]
        assert result["set aside"] == [1]
        for (message, location), name in zip(
            result["full"], ("shard-00001", "shard-00002", "step-00000004"), strict=True
        ):
            assert message.startswith("The disk is full")
            assert "bytes are needed" in message
            assert name in location
        assert result["left"] == ["step-00000001", "step-00000003.damaged"]


@pytest.mark.usefixtures("results")
def test_a_folder_with_a_hole_is_refused_even_with_a_good_manifest(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "step-00000002"
    shutil.copytree(folder / "fsdp" / "step-00000002", path)
    (path / "manifest.json").unlink()
    (path / "shard-00001-model-00001-of-00001.safetensors").unlink()
    write_manifest(path)
    with pytest.raises(DamagedError, match="do not contain all of"):
        Checkpoints(tmp_path, print).load(2)


def test_the_seal_counts_on_every_file_of_other_processes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12")
    wrong: list[dict[str, FileEntry]] = [{"b": {"bytes": 2, "sha256": "0"}}, {"a": {"bytes": 3, "sha256": "0"}}]
    for entries in wrong:
        with pytest.raises(RegardError, match="missing or has another size"):
            write_manifest(tmp_path, entries)
    assert not (tmp_path / "manifest.json").exists()
    write_manifest(tmp_path, {"a": {"bytes": 2, "sha256": "0"}})  # trusted here, and compared by `verify`
    assert json.loads((tmp_path / "manifest.json").read_text())["files"] == {"a": {"bytes": 2, "sha256": "0"}}
    with pytest.raises(DamagedError, match="different content"):
        verify(tmp_path)


def test_a_folder_may_hold_the_files_of_1100_ranks(tmp_path: Path) -> None:
    for rank in range(1100):
        (tmp_path / f"shard-{rank:05}-model-00001-of-00001.safetensors").touch()
    entry: FileEntry = {
        "bytes": 0,
        "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }
    write_manifest(tmp_path, {path.name: entry for path in tmp_path.iterdir()})
    verify(tmp_path)
    assert (tmp_path / "manifest.json").stat().st_size < 1 << 20
