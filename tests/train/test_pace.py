"""The trial steps before a run: they give a time, and leave no trace."""

from itertools import count
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.run import Data, Lines, Run
from regard.config.training import Constant, Device, Training
from regard.data.batches.batch import Batch
from regard.train import pace
from regard.train.objective import Objective
from regard.train.trial import StepTimer

LABELS = {"source.vocabulary": 20, "encoder.layers": 1}
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "translate": ("mini", {"source.vocabulary": 20, "encoder.layers": 1, "decoder.layers": 1}),
    "continue": ("lm-small", {"tokens.vocabulary": 20, "decoder.layers": 1}),
    "fill": ("encoder-small", LABELS),
    "classify": ("encoder-small", LABELS | {"task": "classify", "head": {"kind": "classes", "labels": ["a", "b"]}}),
    "embed": ("encoder-small", LABELS | {"task": "embed", "head": {"kind": "none"}}),
    "tag": ("encoder-small", LABELS | {"task": "tag", "head": {"kind": "tags", "labels": ["a", "b"]}}),
}


def make_run(task: str = "translate", changes: dict[str, Any] | None = None, **train: Any) -> Run:
    preset, small = SMALL[task]
    return Run(
        data=Data(train=(Lines(source="a"),), batch_tokens=64, max_length=8),
        model=codec.preset(preset, small | (changes or {})),
        train=Training(updates=1, update_tokens=128, schedule=Constant(peak=1e-3), **train),
        device=Device(threads=1, attention="float32", logit_rows=0),
    )


@pytest.fixture
def trial_steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Objective, Batch, torch.dtype]]:
    """Every trial step: what learns from which batch, and what products are made in."""
    trial_steps: list[tuple[Objective, Batch, torch.dtype]] = []
    compute = Objective.__call__

    def record_step(self: Objective, batch: Batch) -> Any:
        trial_steps.append((self, batch, (torch.ones(1, 1) @ torch.ones(1, 1)).dtype))
        return compute(self, batch)

    monkeypatch.setattr(Objective, "__call__", record_step)
    return trial_steps


@pytest.mark.parametrize("task", SMALL)
def test_every_task_can_be_timed(task: str) -> None:
    torch.manual_seed(3)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    untuned = make_run(task).model_copy(update={"device": Device()})
    assert 0 < pace.seconds_per_update(untuned, 8) < 10
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_only_masked_tokens_are_learned(trial_steps: list[tuple[Objective, Batch, torch.dtype]]) -> None:
    pace.seconds_per_update(make_run("fill"), 8)
    assert {0 < batch.label_count < 32 for _, batch, _ in trial_steps} == {True}  # of 64
    trial_steps.clear()
    pace.seconds_per_update(make_run("translate"), 8)
    assert {batch.label_count for _, batch, _ in trial_steps} == {64}


def test_the_threads_that_were_asked_for_work(monkeypatch: pytest.MonkeyPatch) -> None:
    thread_counts: list[int] = []

    def count_threads(_: StepTimer) -> float:
        thread_counts.append(torch.get_num_threads())
        return 1.0

    monkeypatch.setattr(StepTimer, "time_update", count_threads)
    before = torch.get_num_threads()
    for threads in (1, 3):
        pace.seconds_per_update(make_run().model_copy(update={"device": Device(threads=threads)}), 8)
    assert thread_counts == [1, 3]
    assert torch.get_num_threads() == before


def test_a_large_batch_is_tried_in_part(
    trial_steps: list[tuple[Objective, Batch, torch.dtype]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pace.seconds_per_update(make_run(), 8)
    assert {batch.labels.size(0) for _, batch, _ in trial_steps} == {8}
    trial_steps.clear()
    monkeypatch.setattr(pace, "MAX_TRIAL_FLOPS", pace.count_flops(make_run(), 8) / 4)
    pace.seconds_per_update(make_run(), 8)
    assert {batch.labels.size(0) for _, batch, _ in trial_steps} == {2}


@pytest.mark.parametrize(("precision", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_it_is_tried_in_the_precision_of_the_run(
    precision: str, dtype: torch.dtype, trial_steps: list[tuple[Objective, Batch, torch.dtype]]
) -> None:
    pace.seconds_per_update(make_run(precision=precision), 8)
    assert {product_dtype for *_, product_dtype in trial_steps} == {dtype}


def test_tokens_fit_the_smaller_vocabulary() -> None:
    sides = {"source.vocabulary": 50, "target": {"kind": "tokens", "vocabulary": 9}}
    assert pace.seconds_per_update(make_run(changes=sides), 8) > 0


def test_r_drop_is_more_work() -> None:
    with_r_drop = make_run(agreement=5.0)
    assert pace.count_flops(with_r_drop, 8) == 2 * pace.count_flops(make_run(), 8)
    assert pace.seconds_per_update(with_r_drop, 8) > 0


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(RegardError, match="There is no device 'cuda:9'"):
        pace.seconds_per_update(make_run().model_copy(update={"device": Device(name="cuda:9")}), 8)


def test_a_model_that_no_machine_holds_is_refused() -> None:
    large = make_run(changes={"encoder.layers": 512, "width": 16_384})
    with pytest.raises(RegardError, match="of memory, and this machine has"):
        pace.seconds_per_update(large, 8)


def test_the_time_is_that_of_the_whole_update(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count()
    monkeypatch.setattr("regard.train.trial.time.perf_counter", lambda: float(next(clock)))
    assert pace.seconds_per_update(make_run(), 8) == 3.0  # two batches and a step, each of them a tick
    monkeypatch.setattr(pace, "MAX_TRIAL_FLOPS", pace.count_flops(make_run(), 8) / 4)
    assert pace.seconds_per_update(make_run(), 8) == 9.0  # a quarter of a batch takes a tick now
