"""Several ranks train like one: a short form of `python -m tests.ranks`."""

from pathlib import Path

import pytest

from tests.ranks import LIMITS, Case, change_ranks, prove


def check_cases(folder: Path, cases: list[Case], updates: int) -> None:
    rows = prove(folder, cases, updates)
    assert [(mode, task) for mode, task, *_ in rows] == cases
    assert max(max(loss, weight) for _, _, loss, weight, _ in rows) <= LIMITS["float32"], rows


def test_two_ranks_train_like_one(tmp_path: Path) -> None:
    check_cases(tmp_path, [("ddp2", "translate"), ("fsdp2", "translate"), ("tensor2", "continue")], updates=4)


@pytest.mark.slow
def test_more_ranks_train_like_one(tmp_path: Path) -> None:
    check_cases(tmp_path, [("fsdp3", "continue"), ("hsdp2x2", "fill"), ("fsdp2+tensor2", "fill")], updates=4)


def test_a_run_continues_with_another_number_of_ranks(tmp_path: Path) -> None:
    faults, loss, weight = change_ranks(tmp_path, "translate", (1, 2, 1), updates=12)
    assert faults == [], "no sample is repeated or missed"
    assert max(loss, weight) <= LIMITS["float32"]
