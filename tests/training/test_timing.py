"""The figures of timing.jsonl: means per step, who waits for whom, and FLOPs as `cost` counts them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.data.batches.loader import StepBatches
from regard.models.cost import cost
from regard.store.run_folder import RunFolder
from regard.training import timing
from regard.training.batches import make_loader
from regard.training.data import prepare_data
from regard.training.distributed.processes import SingleProcess
from regard.training.events import Timed
from regard.training.run import fit
from regard.training.timing import RunTimer, count_flops_of_batches
from tests.training.runs import make_small_run, write_corpus


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.now / 2


class SlowPeers(SingleProcess):
    """Rank 0 of two: the other one works twice as long."""

    world_size = 2

    def all_gather(self, value: Any, **_: Any) -> list[Any]:
        return [value, {**value, "wait_seconds": 0.5, "data_seconds": 1.0, "memory_bytes": 7}]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    monkeypatch.setattr(timing, "measure_peak_flops", lambda *_: 1e6)
    return clock


def test_timer_reports_means_per_step_and_the_slowest_rank(clock: Clock) -> None:
    processes = SlowPeers()
    timer = RunTimer(
        make_small_run("translation", dict.fromkeys(("all.en", "all.de", "book.txt"), "-")),
        processes,
        torch.device("cpu"),
    )

    def load() -> Any:
        for _ in range(3):
            clock.now += 1  # reads batches
            yield StepBatches((), None)  # type: ignore[arg-type]

    for number, step in enumerate(timer.time_data(load())):
        clock.now += 4
        processes.waited_seconds += 3
        if number:  # the first step is skipped
            timer.finish_step(step.batches, input_tokens=10)
        if number == 2:
            break
        clock.now += 100  # a validation
    timed = timer.collect(50)
    assert timed.seconds == (5.0, 5.0)
    assert timed.data_seconds == (1.0, 1.0)
    assert timed.wait_seconds == (3.0, 0.5)
    assert timed.work_seconds == (2.0, 4.5)
    assert timed.cpu_seconds == (2.5, 2.5)
    assert timed.slowest_rank == 1
    assert timed.tokens == 10
    assert timed.memory_bytes[1] == 7 < timed.memory_bytes[0]
    assert timer.collect(100).seconds == (0.0, 0.0)


@pytest.mark.parametrize("task", ["translation", "causal_lm", "masked_lm", "images", "audio"])
def test_flops_of_batches_are_those_of_the_cost(task: str, tmp_path: Path) -> None:
    run = make_small_run(task, write_corpus(tmp_path / "corpus", 60))
    (tmp_path / "run").mkdir()
    data = prepare_data(run, RunFolder(tmp_path / "run"), lambda _: None)
    step = next(iter(make_loader(run, data.train, data.tokenizer_pair).steps()))
    expected = 0.0
    for batch in step.batches:
        rows, source = batch.labels.size(0), 0 if batch.source is None else batch.source.size(1)
        if task == "images":
            source = 5  # four patches and a class token
        elif task == "audio":
            inputs: Any = getattr(run.model, "source", None)
            source = inputs.count_vectors(source)
        target = 0 if batch.target is None else batch.target.size(1)
        expected += cost(run.model, batch_size=rows, source=source, target=target).training.total()
    assert count_flops_of_batches(run.model, step.batches) == expected > 0


@pytest.mark.usefixtures("clock")
def test_mfu_is_the_share_of_the_peak() -> None:
    timer = RunTimer(
        make_small_run("translation", dict.fromkeys(("all.en", "all.de", "book.txt"), "-")),
        SingleProcess(),
        torch.device("cpu"),
    )
    timer._sums.flops, timer._sums.seconds, timer._steps = 2e6, 8.0, 2
    assert timer.collect(50).mfu == 0.25  # 1e6 FLOPs in 4 seconds


def test_run_writes_timings_and_emits_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.trainer.INTERVAL", 2)
    run = make_small_run("causal_lm", write_corpus(tmp_path / "corpus", 60), {"train.steps": 4})
    events: list[Any] = []
    fit(run, tmp_path / "run", listeners=[events.append])
    timings = [event for event in events if isinstance(event, Timed)]
    lines = [json.loads(line) for line in (tmp_path / "run" / "timing.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4, 4]
    assert [tuple(line["seconds"]) for line in lines[:2]] == [timed.seconds for timed in timings]
    for timed in timings:
        assert timed.mfu > 0
        assert timed.peak_flops > 1e6
        assert timed.wait_seconds == (0.0,)
        assert timed.memory_bytes[0] > 1e8
        assert timed.seconds[0] >= timed.data_seconds[0] > 0
