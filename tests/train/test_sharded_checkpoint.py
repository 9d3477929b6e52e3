"""Checkpoints of several ranks: equal to the bit on any number of ranks, sealed last, and never used if damaged."""

from pathlib import Path

import pytest

from regard.train.checkpoint import Checkpoints
from tests.train.sharded_cases import hash_tensors, make_state
from tests.train.workers import run_workers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sharded")


@pytest.fixture(scope="module")
def results(folder: Path) -> list[dict[str, dict[str, str]]]:
    """The hashes of the tensors that each of four ranks has saved and loaded."""
    for step in (1, 2):
        Checkpoints(folder / "one", print).save(step, make_state("one", step))
    return run_workers("tests.train.sharded_cases:save_and_load", 4, {"folder": str(folder)}, folder=folder, timeout=90)


def test_every_number_of_ranks_loads_the_same_bits(results: list[dict[str, dict[str, str]]], folder: Path) -> None:
    one = hash_tensors(make_state("one", 2))
    assert len(one) == 5 * 7 + 1
    expected = {"one": one} | {mode: results[0][f"saved by {mode}"] for mode in ("fsdp", "ddp", "hsdp", "fsdp+tensor")}
    for rank, result in enumerate(results):
        loads = {name: hashes for name, hashes in result.items() if " on " in name}
        for name, hashes in loads.items():
            assert hashes == expected[name.split(" on ")[0]], f"{name}, rank {rank}"
        assert len(loads) == (25, 25, 15, 10)[rank]
    for mode, hashes in expected.items():
        newest = Checkpoints(folder / mode, print).load_newest()
        assert newest is not None
        assert hash_tensors(newest[1]) == hashes, mode
