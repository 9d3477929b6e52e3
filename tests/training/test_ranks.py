"""Several ranks train like one, change their number and go back together: a short form of `python -m tests.ranks`."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from regard.store.adapter_folder import read_adapter
from tests.ranks import LIMITS, Case, compare, compare_changing_runs, prove
from tests.training.rank_cases import BFLOAT16_CASE, CASES, CHANGING_STEPS, GRID_CASE, SPIKY_BATCHES
from tests.training.runs import read_metrics


@pytest.mark.parametrize("case", CASES, ids="/".join)
def test_two_ranks_train_like_one(case: Case, rank_folder: Path, rank_results: list[dict[str, Any]]) -> None:
    expected = rank_results[2]["training"]
    loss, weight = compare(rank_folder / "training", *case, rank_results[0]["training"], expected)
    assert max(loss, weight) <= LIMITS["float32"]
    name = "/".join(case)
    assert (
        expected[f"one/{case[1]}"]["waited"] == 0 < min(rank["training"][name]["waited"] for rank in rank_results[:2])
    )


def test_three_shards_train_like_one_rank_in_bfloat16(rank_folder: Path, rank_results: list[dict[str, Any]]) -> None:
    """Three ranks multiply the same values as one rank; only the order of summation differs."""
    ours, one = (rank_results[rank]["bfloat16"] for rank in (0, 3))
    loss, weight = compare(rank_folder / "bfloat16", *BFLOAT16_CASE, ours, one)
    assert max(loss, weight) <= LIMITS["float32"]


def test_grid_of_shards_and_tensor_parallelism_trains_like_one_rank(
    rank_folder: Path, rank_results: list[dict[str, Any]]
) -> None:
    expected = rank_results[2]["training"]
    loss, weight = compare(rank_folder / "training", *GRID_CASE, rank_results[0]["grid"], expected)
    assert max(loss, weight) <= LIMITS["float32"]


def test_large_models_draw_the_same_weights_in_every_layout(rank_results: list[dict[str, Any]]) -> None:
    for result in rank_results:
        first, *others = result["drawn"].values()
        assert len(others) == 3
        assert all(other == first for other in others)


@pytest.mark.slow
def test_more_ranks_train_like_one(tmp_path: Path) -> None:
    cases = [("fsdp3", "causal_lm"), ("hsdp2x2", "masked_lm"), ("fsdp2+tensor2", "masked_lm")]
    rows = prove(tmp_path, cases, steps=4)
    assert [(row.mode, row.task) for row in rows] == cases
    assert max(max(row.loss, row.weight) for row in rows) <= LIMITS["float32"], rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # torch asks for it while it traces
def test_shards_of_compiled_layers_train_like_one_rank(tmp_path: Path) -> None:
    """In CI, tests/training/test_compile.py compiles for one rank, and other cases of this file have shards."""
    (row,) = prove(tmp_path, [("fsdp3", "causal_lm")], steps=4, changes={"train.compile": True})
    assert max(row.loss, row.weight) <= LIMITS["float32"]


def test_a_run_continues_with_another_number_of_ranks(rank_folder: Path, rank_results: list[dict[str, Any]]) -> None:
    names = ("one", "changing")
    samples = {name: list(chain.from_iterable(result[name] for result in rank_results)) for name in names}
    assert len({step for step, _ in samples["changing"]}) == CHANGING_STEPS
    folder = rank_folder / "changing"
    faults, loss, weight = compare_changing_runs(folder, "translation", CHANGING_STEPS, samples)
    assert faults == [], "no sample is repeated or missed"
    assert max(loss, weight) <= LIMITS["float32"]


@pytest.mark.usefixtures("rank_results")
def test_all_ranks_draw_their_initial_weights_again_after_spikes_in_a_row(rank_folder: Path) -> None:
    ours, one = (read_metrics(rank_folder / name) for name in ("recovered", "recovered-one"))
    assert [line["step"] for line in ours if "loss" in line] == [1, 2, *range(1, 17)]
    for lines in (ours, one):
        (line,) = [line for line in lines if "divergence" in line]
        assert line["action"].startswith("back to step 0 with train.schedule.lr lowered from 0.01")
        assert SPIKY_BATCHES[0] in next(line for line in lines if "spike" in line)["batches"]
    losses = [[line["loss"] for line in lines if "loss" in line] for lines in (ours, one)]
    assert losses[0] == pytest.approx(losses[1], abs=LIMITS["float32"])


@pytest.mark.usefixtures("rank_results")
def test_adapters_are_trained_on_several_ranks_as_on_one(rank_folder: Path) -> None:
    """The run on several ranks was paused and resumed."""
    ours, one = (read_adapter(rank_folder / name).tensors for name in ("tuned", "tuned-one"))
    assert max(float((ours[name] - one[name]).abs().max()) for name in one) <= LIMITS["float32"]
    assert max(float(tensor.abs().max()) for name, tensor in one.items() if name.endswith("lora_b")) > 1e-3
    metrics = [read_metrics(rank_folder / name) for name in ("tuned", "tuned-one")]
    losses = [[line["loss"] for line in lines if "loss" in line] for lines in metrics]
    assert losses[0] == pytest.approx(losses[1], abs=LIMITS["float32"])


def test_a_signal_to_one_rank_stops_all(rank_folder: Path, rank_results: list[dict[str, Any]]) -> None:
    """The machine of a rank may end alone; the run is saved, and continues to the same weights."""
    assert [result["stopped"] for result in rank_results[:2]] == ["stop requested"] * 2
    assert [result["resumed"] for result in rank_results[:2]] == ["finished"] * 2
    ours, undisturbed = (read_adapter(rank_folder / name).tensors for name in ("stopped", "tuned"))
    assert max(float((ours[name] - undisturbed[name]).abs().max()) for name in ours) <= LIMITS["float32"]
