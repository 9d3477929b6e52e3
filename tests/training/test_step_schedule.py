"""Which steps validate, save and keep their checkpoint, from the settings and the recorded plans."""

import pytest

from regard.training.step_schedule import StepPlan
from tests.training.factories import make_schedule

SCHEDULE_STEPS = 1000


def test_position_is_continuous_and_ends_with_the_schedule() -> None:
    plan = StepPlan(SCHEDULE_STEPS)
    for step, total in ((100, 400), (250, 3000), (2000, 2100)):
        before = plan.schedule_position(step, SCHEDULE_STEPS)
        plan = StepPlan(total, step, before)
        assert plan.schedule_position(step, SCHEDULE_STEPS) == before
        gain = plan.schedule_position(step + 1, SCHEDULE_STEPS) - before
        assert 0 < gain <= (SCHEDULE_STEPS - before) / (total - step) + 1e-9
    assert plan.schedule_position(2100, SCHEDULE_STEPS) == pytest.approx(SCHEDULE_STEPS, rel=1e-12)


def test_without_a_new_plan_positions_are_the_steps() -> None:
    for steps in (1, 7, 24, 99_991, 300_000):
        assert all(StepPlan(steps).schedule_position(step, steps) == step for step in range(1, min(steps, 500)))


def test_last_step_is_saved_whatever_the_interval() -> None:
    schedule = make_schedule({"steps": 7, "save_every": 5})
    assert [step for step in range(11) if schedule.is_regular(step)] == [5, 7, 10]
    assert [step for step in range(8) if schedule.should_save(step)] == [5], "step 7 is saved with the final state"
    averaging = make_schedule({"steps": 7, "save_every": 5, "average": 2})
    assert [step for step in range(8) if averaging.should_save(step)] == [5, 7]


def test_validation_and_checkpoints_have_intervals_of_their_own() -> None:
    schedule = make_schedule({"steps": 10, "save_every": 5}, validation_interval=4)
    assert [step for step in range(1, 11) if schedule.should_validate(step)] == [4, 8, 10]
    assert [step for step in range(1, 11) if schedule.is_regular(step)] == [5, 10]


def test_plan_stretches_intervals_and_its_step_is_saved() -> None:
    plans = (StepPlan(40, since=10, position=10.0),)  # 30 steps for the last 10 positions
    schedule = make_schedule({"steps": 20, "save_every": 5}, plans=plans)
    assert (schedule.steps, schedule.position(25)) == (40, 15.0)
    assert [step for step in range(1, 41) if schedule.is_regular(step)] == [5, 10, 25, 40]
    with_stride = make_schedule({"steps": 20, "save_every": 5}, plans=(StepPlan(20, 4, 4.0, stride=2),))
    assert [step for step in range(1, 21) if with_stride.is_regular(step)] == [4, 10, 20]


def test_time_budget_skips_validation_shortly_before_the_last() -> None:
    steps = {"steps": 22}
    assert [step for step in range(1, 23) if make_schedule(steps, validation_interval=10).should_validate(step)] == [
        10,
        20,
        22,
    ]
    timed = make_schedule({**steps, "minutes": 1.0}, validation_interval=10)
    assert [step for step in range(1, 23) if timed.should_validate(step)] == [10, 22]


def test_kept_checkpoints_are_the_last_regular_ones_and_those_to_go_back_to() -> None:
    settings = {"steps": 100, "save_every": 10, "keep_checkpoints": 2}
    saved = [0, 10, 20, 30, 37, 40, 43]  # 37 and 43 on a signal
    schedule = make_schedule(settings)
    assert schedule.select_kept(saved, needed=31, recent=31) == {30, 40}
    assert make_schedule({**settings, "average": 3}).select_kept(saved, needed=31, recent=31) == {20, 30, 40}
    assert schedule.select_kept(saved, needed=12, recent=41) == {10, 30, 40}, "it may have diverged since step 12"
    assert schedule.select_kept(saved, needed=12, recent=21) == {10, 20, 30, 40}
    assert schedule.select_kept(saved, needed=9, recent=21) == {0, 20, 30, 40}, "back to the initial weights"
    assert schedule.select_last(saved, 39) == 30
    assert (schedule.has_regular(9), schedule.has_regular(10)) == (False, True)
