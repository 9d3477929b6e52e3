"""Several ranks train like one: a short form of `python -m tests.ranks`."""

from pathlib import Path

from tests.ranks import LIMITS, change_ranks, prove


def test_every_mode_trains_like_one_rank(tmp_path: Path) -> None:
    rows = prove(tmp_path, ["ddp2", "fsdp2", "tensor2"], ["translate", "continue"], updates=4)
    assert len(rows) == 6
    assert max(max(loss, weight) for _, _, loss, weight, _ in rows) <= LIMITS["float32"], rows


def test_four_ranks_in_two_dimensions_train_like_one(tmp_path: Path) -> None:
    rows = prove(tmp_path, ["hsdp2x2", "fsdp2+tensor2"], ["fill"], updates=3)
    assert len(rows) == 2
    assert max(max(loss, weight) for _, _, loss, weight, _ in rows) <= LIMITS["float32"], rows


def test_a_run_continues_with_another_number_of_ranks(tmp_path: Path) -> None:
    faults, loss, weight = change_ranks(tmp_path, "translate", (1, 2, 1), updates=12)
    assert faults == [], "no sample is repeated or missed"
    assert max(loss, weight) <= LIMITS["float32"]
