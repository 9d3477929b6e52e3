"""Timing of training steps: autotune picks the fastest settings, the forecast is right, and no state is changed."""

import re
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.codec import RUN_FILES
from regard.config.run import DataConfig, RunConfig
from regard.config.sources import LinesConfig
from regard.config.toml_file import to_dict
from regard.config.training import ConstantConfig, DeviceConfig, TrainingConfig
from regard.data.batches.batch import Batch
from regard.nn.autocast_attention import AutocastAttention
from regard.nn.stack import Stack
from regard.store.run_folder import RunFolder
from regard.training import autotune as autotune_module
from regard.training.autotune import ROUNDS, StepTimer, autotune, count_flops, pick_typical_batch, seconds_per_step
from regard.training.data import RunData, prepare_data
from regard.training.events import Event, Message
from regard.training.objective import Objective
from regard.training.resolve import resolve_run
from tests.training.runs import make_small_run, write_corpus

UNTUNED = {"device.attention": None, "device.logit_rows": None, "train.precision": "bfloat16"}


def prepare_run(folder: Path, changes: dict[str, Any]) -> tuple[RunConfig, RunData]:
    run = make_small_run("translation", write_corpus(folder / "corpus"), changes)
    run_folder = RunFolder(folder / "run")
    run_folder.path.mkdir()
    run_data = prepare_data(run, run_folder, lambda _: None)
    return resolve_run(run, run_data), run_data


def test_tuned_settings_are_reported_and_set(tmp_path: Path) -> None:
    events: list[Event] = []
    run, run_data = prepare_run(tmp_path, UNTUNED)
    tuned_run = autotune(run, run_data, events.append)
    assert tuned_run.device.attention in ("float32", "autocast")
    assert tuned_run.device.logit_rows == 0  # the vocabulary is small
    message = events[-1]
    assert isinstance(message, Message)
    assert "A step takes about" in message.text
    assert autotune(tuned_run, run_data, events.append) is tuned_run  # no setting is left to tune
    assert events[-1] is message


@pytest.mark.parametrize(("vocabulary", "rows"), [(900, 0), (2000, 256)])
def test_autotune_with_one_option_per_setting_computes_no_batch(
    vocabulary: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, run_data = prepare_run(tmp_path, {f"device.{name}": None for name in FASTEST})
    run = RUN_FILES.parse(to_dict(run), {"model.source.vocabulary": vocabulary})
    monkeypatch.setattr(autotune_module, "StepTimer", None)
    before, events = torch.get_num_threads(), list[Event]()
    torch.set_num_threads(1)
    try:
        device = autotune(run, run_data, events.append).device
    finally:
        torch.set_num_threads(before)
    assert (device.attention, device.threads, device.logit_rows) == ("autocast", 1, rows)
    assert not events  # the line of the first step states its time


def make_timer(run: RunConfig, run_data: RunData) -> StepTimer:
    return StepTimer(run, pick_typical_batch(run, run_data))


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_step_is_its_batches_and_one_step(optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, run_data = prepare_run(tmp_path, {"train.optimizer": {"kind": optimizer}})
    clock = iter(range(1000))
    monkeypatch.setattr("regard.training.autotune.time.perf_counter", lambda: float(next(clock)))
    timer = make_timer(run, run_data)
    before = {name: tensor.clone() for name, tensor in timer.model.state_dict().items()}
    assert run.gradient_accumulation == 2
    assert timer.time_step() == 3.0  # each call takes one tick
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

    monkeypatch.setattr(StepTimer, "_forward_backward", fail_on_large_batches)
    assert make_timer(run, run_data).time_batch() > 0
    assert timed[0] == row_count
    assert timed[-1] <= row_count / 2


def test_another_device_error_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, run_data = prepare_run(tmp_path, {})

    def broken(_: StepTimer) -> None:
        raise RuntimeError("another fault")

    monkeypatch.setattr(StepTimer, "_forward_backward", broken)
    with pytest.raises(RuntimeError, match="another fault"):
        make_timer(run, run_data)


def test_another_option_must_be_clearly_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timer, used = make_timer(*prepare_run(tmp_path, {})), list[str]()
    times = {"first": 1.0, "second": 0.5, "third": 0.8}
    monkeypatch.setattr(timer, "time_batch", lambda: times[used[-1]])
    options = {name: partial(used.append, name) for name in times}
    assert (timer.pick_fastest("threads", options), used[-1]) == ("second", "second")
    times.update(second=0.98, third=0.99)
    assert (timer.pick_fastest("threads", options), used[-1]) == ("first", "first")


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
        float32_flags = {
            module.should_upcast for module in timer.model.modules() if isinstance(module, AutocastAttention)
        }
        timed.append((float32_flags == {True}, torch.get_num_threads(), timer._objective.logit_rows))
        in_float32, threads, rows = timed[-1]
        return 1.0 + in_float32 + (threads > 1) + (rows != 256)

    monkeypatch.setattr(timer, "time_batch", fake_time_batch)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert timer.tune() == FASTEST | ({"logit_rows": 0} if vocabulary < 1000 else {})
        assert len(timed) == ROUNDS * (2 + 2 + (3 if vocabulary > 1000 else 0))
        fake_time_batch()
        assert timed[-1] == (False, 1, 0 if vocabulary < 1000 else 256)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("min_rounds", "seconds", "rounds"), [(0, 0.1, 5), (0, 5.0, 2), (0, 11.0, 0), (3, 99.0, 3)])
def test_slow_batches_get_fewer_rounds_but_never_fewer_than_the_minimum(
    min_rounds: int, seconds: float, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer, used, now = make_timer(*prepare_run(tmp_path, {})), list[str](), 0.0

    def pass_time() -> float:
        nonlocal now
        now += seconds
        return seconds / (1 + (used[-1] == "second"))

    monkeypatch.setattr("regard.training.autotune.time.perf_counter", lambda: now)
    monkeypatch.setattr(timer, "time_batch", pass_time)
    timer._last_seconds = seconds
    options = {name: partial(used.append, name) for name in ("first", "second")}
    assert timer.pick_fastest("threads", options, min_rounds) == ("second" if rounds else "first")
    assert used[:-1] == rounds * ["first", "second"]  # in turns; the last call applies the choice
    assert timer.timings == ({"threads": {"first": seconds, "second": seconds / 2}} if rounds else {})


def test_thread_count_is_timed_on_the_slowest_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log states the times of both counts, and no claim about settings that were not timed."""
    run, run_data = prepare_run(tmp_path, {"device.threads": None, "device.logit_rows": None, "train.minutes": 0.1})
    monkeypatch.setattr(StepTimer, "_time", lambda *_: 1000.0 * torch.get_num_threads())
    before, events = torch.get_num_threads(), list[Event]()
    torch.set_num_threads(2)
    try:
        assert autotune(run, run_data, events.append).device.threads == 1
    finally:
        torch.set_num_threads(before)
    assert isinstance(events[-1], Message)
    assert events[-1].kind == "detail"  # of interest only with --explain
    assert re.fullmatch(r"Threads: 1 \(2: .+ s per batch, 1: .+ s per batch\)\.", events[-1].text), events[-1].text


def test_single_option_is_not_reported(tmp_path: Path) -> None:
    events: list[Event] = []
    run, run_data = prepare_run(tmp_path, {"device.logit_rows": None, "train.minutes": 0.1})
    assert autotune(run, run_data, events.append).device.logit_rows == 0  # the vocabulary is small
    assert not [event for event in events if isinstance(event, Message)]


def test_slow_batches_are_tried_in_part_and_still_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, run_data = prepare_run(tmp_path, {})
    batch = pick_typical_batch(run, run_data)
    row_count = batch.labels.size(0)
    monkeypatch.setattr(StepTimer, "_time", lambda self, _: 12.0 * self._batch.labels.size(0) / row_count)
    timer, used = StepTimer(run, batch, max_seconds=2.0), list[str]()
    assert timer._batch.labels.size(0) <= row_count / 3
    assert timer.time_batch() == pytest.approx(12.0)
    timer.pick_fastest("threads", {name: partial(used.append, name) for name in ("first", "second")})
    assert len(used) == 2 * ROUNDS + 1  # all rounds: a part of the batch is fast enough


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


LABELS = {"source.vocabulary": 20, "encoder.layers": 1}
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "translation": ("mini", {"source.vocabulary": 20, "encoder.layers": 1, "decoder.layers": 1}),
    "causal_lm": ("lm-small", {"tokens.vocabulary": 20, "decoder.layers": 1}),
    "masked_lm": ("encoder-small", LABELS),
    "text_classification": (
        "encoder-small",
        LABELS | {"task": "text_classification", "head": {"kind": "classes", "labels": ["a", "b"]}},
    ),
    "tagging": ("encoder-small", LABELS | {"task": "tagging", "head": {"kind": "tags", "labels": ["a", "b"]}}),
}


def make_run(task: str = "translation", changes: dict[str, Any] | None = None, **train: Any) -> RunConfig:
    preset, small = SMALL[task]
    return RunConfig(
        data=DataConfig(train=(LinesConfig(source="a"),), batch_tokens=64, max_length=8),
        model=codec.preset(preset, small | (changes or {})),
        train=TrainingConfig(steps=1, step_tokens=128, schedule=ConstantConfig(lr=1e-3), **train),
        device=DeviceConfig(threads=1, attention="float32", logit_rows=0),
    )


@pytest.fixture
def trial_steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Objective, Batch, torch.dtype]]:
    """Record every trial step: its objective, its batch, and the dtype of its matrix products."""
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
    untuned = make_run(task).model_copy(update={"device": DeviceConfig()})
    assert 0 < seconds_per_step(untuned, 8) < 10
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_only_masked_tokens_are_learned(trial_steps: list[tuple[Objective, Batch, torch.dtype]]) -> None:
    seconds_per_step(make_run("masked_lm"), 8)
    assert {0 < batch.label_count < 32 for _, batch, _ in trial_steps} == {True}  # of 64 positions
    trial_steps.clear()
    seconds_per_step(make_run("translation"), 8)
    assert {batch.label_count for _, batch, _ in trial_steps} == {64}


def test_the_threads_that_were_asked_for_work(monkeypatch: pytest.MonkeyPatch) -> None:
    thread_counts: list[int] = []

    def count_threads(_: StepTimer) -> float:
        thread_counts.append(torch.get_num_threads())
        return 1.0

    monkeypatch.setattr(StepTimer, "time_step", count_threads)
    before = torch.get_num_threads()
    for threads in (1, 3):
        seconds_per_step(make_run().model_copy(update={"device": DeviceConfig(threads=threads)}), 8)
    assert thread_counts == [1, 3]
    assert torch.get_num_threads() == before


def test_a_large_batch_is_tried_in_part(
    trial_steps: list[tuple[Objective, Batch, torch.dtype]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds_per_step(make_run(), 8)
    assert {batch.labels.size(0) for _, batch, _ in trial_steps} == {8}
    trial_steps.clear()
    monkeypatch.setattr(autotune_module, "MAX_TRIAL_FLOPS", count_flops(make_run(), 8) / 4)
    seconds_per_step(make_run(), 8)
    assert {batch.labels.size(0) for _, batch, _ in trial_steps} == {2}


@pytest.mark.parametrize(("precision", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_it_is_tried_in_the_precision_of_the_run(
    precision: str, dtype: torch.dtype, trial_steps: list[tuple[Objective, Batch, torch.dtype]]
) -> None:
    seconds_per_step(make_run(precision=precision), 8)
    assert {product_dtype for *_, product_dtype in trial_steps} == {dtype}


def test_tokens_fit_the_smaller_vocabulary() -> None:
    sides = {"source.vocabulary": 50, "target": {"kind": "tokens", "vocabulary": 9}}
    assert seconds_per_step(make_run(changes=sides), 8) > 0


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(RegardError, match="There is no device 'cuda:9'"):
        seconds_per_step(make_run().model_copy(update={"device": DeviceConfig(name="cuda:9")}), 8)


def test_a_model_that_no_machine_holds_is_refused() -> None:
    large = make_run(changes={"encoder.layers": 512, "d_model": 16_384})
    with pytest.raises(RegardError, match="of memory; this machine has"):
        seconds_per_step(large, 8)


def test_the_time_is_that_of_the_whole_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count()
    monkeypatch.setattr("regard.training.autotune.time.perf_counter", lambda: float(next(clock)))
    assert seconds_per_step(make_run(), 8) == 3.0  # two batches and a step take one tick each
    monkeypatch.setattr(autotune_module, "MAX_TRIAL_FLOPS", count_flops(make_run(), 8) / 4)
    assert seconds_per_step(make_run(), 8) == 9.0  # now a quarter of a batch takes one tick
