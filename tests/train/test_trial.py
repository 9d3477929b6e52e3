"""A model that is timed: it takes the fastest way, and leaves no trace."""

from functools import partial
from pathlib import Path

import pytest
import torch

from regard.config.codec import RUN_FILES
from regard.config.run import Run
from regard.config.toml_file import to_dict
from regard.nn.attention import Attention
from regard.nn.stack import Stack
from regard.train.corpora import RunData
from regard.train.probe import pick_typical_batch
from regard.train.trial import StepTimer
from tests.train.test_probe import prepare_run


def make_timer(run: Run, run_data: RunData) -> StepTimer:
    return StepTimer(run, pick_typical_batch(run, run_data))


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_an_update_is_its_batches_and_one_step(optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, run_data = prepare_run(tmp_path, {"train.optimizer": {"kind": optimizer}})
    timer = make_timer(run, run_data)
    before = {name: tensor.clone() for name, tensor in timer.model.state_dict().items()}
    clock = iter(range(100))
    monkeypatch.setattr("regard.train.trial.time.perf_counter", lambda: float(next(clock)))
    assert run.accumulate == 2
    assert timer.time_update() == 3.0  # each of them a tick
    assert all(torch.equal(tensor, before[name]) for name, tensor in timer.model.state_dict().items())
    assert all(parameter.grad is None for parameter in timer.model.parameters())


def test_a_batch_that_memory_does_not_hold_is_timed_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, run_data = prepare_run(tmp_path, {})
    row_count = make_timer(run, run_data)._full_batch.labels.size(0)
    assert row_count >= 4
    timed: list[int] = []
    forward_backward = StepTimer._forward_backward

    def fail_on_large_batches(self: StepTimer) -> None:
        timed.append(self._batch.labels.size(0))
        if timed[-1] > row_count / 2:
            raise torch.OutOfMemoryError("no more")
        forward_backward(self)

    monkeypatch.setattr(StepTimer, "_learn", fail_on_large_batches)
    assert make_timer(run, run_data).time_batch() > 0
    assert timed[0] == row_count
    assert timed[-1] <= row_count / 2


def test_another_device_error_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, run_data = prepare_run(tmp_path, {})

    def broken(_: StepTimer) -> None:
        raise RuntimeError("another fault")

    monkeypatch.setattr(StepTimer, "_learn", broken)
    with pytest.raises(RuntimeError, match="another fault"):
        make_timer(run, run_data)


def test_another_option_must_be_clearly_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timer, used = make_timer(*prepare_run(tmp_path, {})), list[str]()
    times = {"first": 1.0, "second": 0.5, "third": 0.8}
    monkeypatch.setattr(timer, "seconds", lambda: times[used[-1]])
    options = {name: partial(used.append, name) for name in times}
    assert (timer.pick_fastest(options), used[-1]) == ("second", "second")
    times.update(second=0.98, third=0.99)
    assert (timer.pick_fastest(options), used[-1]) == ("first", "first")


FASTEST = {"attention": "autocast", "threads": 1, "logit_rows": 256}


@pytest.mark.parametrize("vocabulary", [900, 2000])
def test_the_fastest_options_are_found_and_set(
    vocabulary: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    untuned = {f"device.{name}": None for name in FASTEST}
    run, run_data = prepare_run(tmp_path, untuned | {"train.precision": "bfloat16"})
    timer = make_timer(RUN_FILES.parse(to_dict(run), {"model.source.vocabulary": vocabulary}), run_data)
    timed: list[tuple[bool, int, int]] = []

    def fake_time_batch() -> float:
        float32_flags = {module.should_upcast for module in timer.model.modules() if isinstance(module, Attention)}
        timed.append((float32_flags == {True}, torch.get_num_threads(), timer._objective.logit_rows))
        in_float32, threads, rows = timed[-1]
        return 1.0 + in_float32 + (threads > 1) + (rows != 256)

    monkeypatch.setattr(timer, "seconds", fake_time_batch)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert timer.tune() == FASTEST | ({"logit_rows": 0} if vocabulary < 1000 else {})
        assert len(timed) == 3 * (2 + 2 + (3 if vocabulary > 1000 else 0))
        fake_time_batch()
        assert timed[-1] == (False, 1, 0 if vocabulary < 1000 else 256)
    finally:
        torch.set_num_threads(before)


def test_slow_models_are_asked_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timer, used = make_timer(*prepare_run(tmp_path, {})), list[str]()
    options = {name: partial(used.append, name) for name in ("first", "second")}
    for last_seconds, rounds in ((0.1, 3), (5.0, 2), (11.0, 0)):
        used.clear()
        timer._last_seconds = last_seconds
        monkeypatch.setattr(timer, "seconds", lambda: 1.0)
        assert timer.pick_fastest(options) == "first"
        assert len(used) == 2 * rounds + 1  # the last time, to set what was chosen


def test_slow_batches_are_tried_in_part_and_still_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, run_data = prepare_run(tmp_path, {})
    batch = pick_typical_batch(run, run_data)
    row_count = batch.labels.size(0)
    monkeypatch.setattr(StepTimer, "_time", lambda self, _: 12.0 * self._batch.labels.size(0) / row_count)
    timer, used = StepTimer(run, batch, max_seconds=2.0), list[str]()
    assert timer._batch.labels.size(0) <= row_count / 3
    assert timer.time_batch() == pytest.approx(12.0)
    timer.pick_fastest({name: partial(used.append, name) for name in ("first", "second")})
    assert len(used) == 2 * 3 + 1  # all rounds: a part is quick


def test_what_does_not_fit_is_never_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, run_data = prepare_run(tmp_path, {})
    batch = pick_typical_batch(run, run_data)
    row_count, timed = batch.labels.size(0), list[int]()

    def fail_on_large_batches(self: StepTimer, _: object) -> float:
        timed.append(self._batch.labels.size(0))
        if timed[-1] > row_count / 4:
            raise torch.OutOfMemoryError("no more")
        return 1.0

    monkeypatch.setattr(StepTimer, "_time", fail_on_large_batches)
    StepTimer(run, batch, max_seconds=3.0).time_batch()  # 4 s and more for the whole: half of it would take long enough
    assert max(timed[timed.index(min(timed)) :]) <= row_count / 4


def test_layers_that_compute_twice_are_timed_so(tmp_path: Path) -> None:
    for checkpoint_activations in (False, True):
        run, run_data = prepare_run(
            tmp_path / str(checkpoint_activations), {"train.checkpoint_activations": checkpoint_activations}
        )
        stacks = [module for module in make_timer(run, run_data).model.modules() if isinstance(module, Stack)]
        assert {stack.checkpoint_activations for stack in stacks} == {checkpoint_activations}
