"""`train.minutes`: the number of steps follows the speed of the run, and resumed runs follow the recorded plans."""

import itertools
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.config.run import RunConfig
from regard.training import trainer
from regard.training.events import Event, Listener, Replanned, StepFinished
from regard.training.run import fit, resume
from regard.training.step_schedule import StepPlan, StepSchedule
from regard.training.time_budget import TimeBudget
from tests.training.factories import make_schedule
from tests.training.runs import compute_fingerprints, make_small_run, read_metrics, write_corpus
from tests.training.stops import run_until_stopped

SCHEDULE_STEPS = 1000


class Clock:
    """A clock that moves only when the simulated run works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def simulate(
    minutes: float,
    seconds_per_step: Any,
    *,
    validation: float = 1.0,
    checkpoint: float = 0.1,
    first_plan: int = SCHEDULE_STEPS,
    max_steps: int | None = None,
    preparation: float = 5.0,
) -> tuple[float, list[StepPlan]]:
    """Run the planning loop of the trainer with a simulated machine; return the seconds used and the plans.

    Args:
        minutes: The budget.
        seconds_per_update: Function of the share of the time that has passed.
        validation: Seconds of a validation.
        checkpoint: Seconds of a checkpoint.
        first_plan: Number of steps of the settings.
        max_steps: Upper limit of the steps.
        preparation: Seconds before the first step.
    """
    clock = Clock()
    budget = TimeBudget(minutes, preparation, final_validations=1, clock=clock)
    schedule = make_schedule({"steps": first_plan, "max_steps": max_steps, "minutes": minutes})
    step = 0
    while step < schedule.steps:
        step += 1
        clock.now += seconds_per_step((clock.now + preparation) / (60 * minutes))
        if (plan := budget.replan(schedule, step)) is not None:
            schedule = replace(schedule, plans=(*schedule.plans, plan))
        if schedule.should_validate(step):
            share = (clock.now + preparation) / (60 * minutes)
            clock.now += validation * seconds_per_step(share) / seconds_per_step(0.0)
            budget.record("validation")
        if schedule.is_regular(step):
            clock.now += checkpoint
            budget.record("checkpoint")
    return preparation + clock.now + checkpoint + 1.0, [StepPlan(first_plan), *schedule.plans]


@pytest.mark.parametrize("minutes", [1, 2, 5, 60])
@pytest.mark.parametrize("error", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_the_time_is_used_whatever_was_forecast(minutes: float, error: float) -> None:
    actual = 60 * minutes / SCHEDULE_STEPS * error
    seconds, _ = simulate(minutes, lambda _: actual)
    tolerance = max(0.05 * 60 * minutes, 1.5 * actual)
    assert abs(seconds - 60 * minutes) <= tolerance


@pytest.mark.parametrize("minutes", [1, 2, 5])
@pytest.mark.parametrize("factor", [0.5, 2.0, 3.0])
def test_a_change_of_speed_half_way_is_absorbed(minutes: float, factor: float) -> None:
    seconds, plans = simulate(minutes, lambda share: 0.05 * (factor if share > 0.5 else 1.0))
    assert abs(seconds - 60 * minutes) <= 0.1 * 60 * minutes
    assert len(plans) > 2


def test_slow_validations_become_rarer_instead_of_eating_the_time() -> None:
    seconds, plans = simulate(2, lambda _: 0.1, validation=15.0)
    assert max(plan.stride for plan in plans) > 1
    assert seconds <= 1.15 * 120


def test_no_more_steps_than_suit_the_corpus() -> None:
    seconds, plans = simulate(5, lambda _: 0.01, first_plan=500, max_steps=800)
    assert plans[-1].steps == 800
    assert seconds < 60


def test_expensive_checkpoints_are_not_spent_on_small_changes() -> None:
    _, plans = simulate(5, lambda _: 0.25 + 0.0001, checkpoint=6.0, preparation=0.0)
    assert len(plans) <= 8, "more than ten planning points"


class Scripted(TimeBudget):
    """A budget that changes the plan at given steps, as a recorded run did."""

    script: dict[int, int] = {}  # noqa: RUF012 - set by the test

    def should_plan(self, *_: float) -> bool:
        return True

    def make_plan(self, schedule: StepSchedule, step: int) -> StepPlan:
        total = self.script.get(step, schedule.steps)
        return schedule.plan if total == schedule.steps else StepPlan(total, step, schedule.position(step))


def make_timed_run(folder: Path, changes: dict[str, Any] | None = None) -> RunConfig:
    return make_small_run("causal_lm", write_corpus(folder / "corpus"), {"train.minutes": 60.0, **(changes or {})})


def fingerprints(folder: Path) -> dict[str, str]:
    """Return the fingerprints of a run without state.json and manifest.json, which hold the seconds used."""
    return {
        name: value
        for name, value in compute_fingerprints(folder).items()
        if not name.startswith("checkpoint/") or name.endswith(".safetensors")
    }


@pytest.mark.parametrize("script", [{7: 40}, {3: 15, 9: 33}, {10: 12}])
def test_resumed_runs_follow_the_recorded_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: dict[int, int]
) -> None:
    monkeypatch.setattr(trainer, "TimeBudget", Scripted)
    monkeypatch.setattr(Scripted, "script", script)
    run = make_timed_run(tmp_path)
    assert fit(run, tmp_path / "whole").step == list(script.values())[-1]
    recorded = {line["step"]: line["plan"]["steps"] for line in read_metrics(tmp_path / "whole") if "plan" in line}
    assert recorded == script

    def start_or_resume(listeners: list[Listener], pause: int | None) -> None:
        if (tmp_path / "stopped" / "run.toml").is_file():
            resume(tmp_path / "stopped", listeners=listeners, pause_at=pause)
        else:
            fit(run, tmp_path / "stopped", listeners=listeners, pause_at=pause)

    for step, method in ((2, "kill"), (4, "terminate"), (8, "kill"), (11, "pause")):
        code = run_until_stopped(start_or_resume, step, method)
        assert code == (-signal.SIGKILL if method == "kill" else 0)
    resume(tmp_path / "stopped")
    assert fingerprints(tmp_path / "stopped") == fingerprints(tmp_path / "whole")


def test_a_kill_between_plan_and_checkpoint_leaves_the_old_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "TimeBudget", Scripted)
    monkeypatch.setattr(Scripted, "script", {7: 40})
    run = make_timed_run(tmp_path)

    def kill(event: Event) -> None:
        if isinstance(event, Replanned):
            os.kill(os.getpid(), signal.SIGKILL)

    def start(listeners: list[Listener], pause: int | None) -> None:
        fit(run, tmp_path / "run", listeners=[*listeners, kill], pause_at=pause)

    assert run_until_stopped(start, 30, "pause") == -signal.SIGKILL
    monkeypatch.setattr(Scripted, "script", {})
    assert resume(tmp_path / "run").step == run.train.steps
    assert not any("plan" in line for line in read_metrics(tmp_path / "run"))


@pytest.mark.parametrize(("steps", "validated"), [(22, [10, 22]), (28, [10, 20, 28])])
def test_validation_shortly_before_the_last_one_is_skipped(
    steps: int, validated: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "TimeBudget", Scripted)
    monkeypatch.setattr(Scripted, "script", {})
    run = make_timed_run(tmp_path, {"train.steps": steps, "validation.every_steps": 10, "train.average": 1})
    fit(run, tmp_path / "run")
    assert [line["step"] for line in read_metrics(tmp_path / "run") if "validation" in line] == validated


def test_the_learning_rate_is_continuous_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "TimeBudget", Scripted)
    monkeypatch.setattr(Scripted, "script", {8: 60, 30: 36})
    changes = {"train.schedule": {"kind": "linear", "lr": 1.0, "warmup": 4}, "train.steps": 24}
    rates: list[float] = []

    def collect(event: Event) -> None:
        if isinstance(event, StepFinished):
            rates.append(event.learning_rate)

    fit(make_timed_run(tmp_path, changes), tmp_path / "run", listeners=[collect])
    assert len(rates) == 36
    assert rates[-1] == pytest.approx(0.0, abs=1e-9)
    assert rates[3:] == sorted(rates[3:], reverse=True)
    steps = [before - after for before, after in itertools.pairwise(rates[4:])]
    assert max(steps) <= rates[29] / 6 + 1e-9, "the steepest part is the last: what is left, in six steps"


class Counting(TimeBudget):
    """A budget whose clock moves by 10 ms whenever it is read, so that the test does not depend on the machine."""

    def __init__(self, minutes: float, _: float, validation_steps: float, final_validations: int) -> None:
        readings = itertools.count()
        super().__init__(minutes, 0.0, validation_steps, final_validations, clock=lambda: 0.01 * next(readings))


def test_more_steps_than_planned_fit_and_the_run_can_be_extended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "TimeBudget", Counting)
    plans: list[Event] = []
    run = make_timed_run(tmp_path, {"train.minutes": 4 / 60, "train.steps": 10, "train.average": 1})
    finished = fit(run, tmp_path / "run", listeners=[plans.append])
    planned = [event for event in plans if isinstance(event, Replanned)]
    assert finished.step > 10
    assert finished.step == planned[-1].steps
    assert planned[-1].seconds_left < 3.0
    totals = [10, *(event.steps for event in planned)]
    assert all(event.step < total for event, total in zip(planned, totals, strict=False)), "no plan after the last"
    with pytest.raises(RegardError, match="The run is finished"):
        resume(tmp_path / "run")
    assert resume(tmp_path / "run", more=3).step == finished.step + 3
