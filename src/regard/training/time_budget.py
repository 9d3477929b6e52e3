"""Train for a given time (`train.minutes`): plan the number of steps from the measured speed.

The settings contain the first plan, `train.steps`. The trainer measures steps, validations and checkpoints, and replans
a few times. A new plan takes effect at a checkpoint that stores it, so a resumed run follows the recorded plans.
`metrics.jsonl` lists them.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

from regard.training.step_schedule import StepPlan, StepSchedule

PLANNING_INTERVAL = (
    0.08  # share of the time between plans; the run also replans when half of the remaining time is over
)
FIRST_INTERVAL = 0.02  # the same for the first plan
MIN_MEASURED = 3  # steps that are measured before the first plan
WINDOW_SHARE = 0.06  # the speed is averaged over this share of the time, to detect changes early
VALIDATION_SHARE = 0.15  # of the remaining time at most; more would leave too little for steps
EXIT_SECONDS = 1.0  # from the last checkpoint to the end of the process
TOLERANCE = 0.005  # minimum change of the end, as a share of the time, that is worth a checkpoint

Work = Literal["step", "validation", "checkpoint", "film"]


class TimeBudget:
    """Measures the speed of a run and plans how many steps fit into its time.

    Args:
        minutes: The total time of the run, from command to exit.
        seconds_used: Seconds that the run has already used.
        validation_steps: The cost of a validation in steps, until it is measured.
        final_validations: Number of validations after the last step: the model and the averaged checkpoints.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        minutes: float,
        seconds_used: float = 0.0,
        validation_steps: float = 0.0,
        final_validations: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._seconds, self._validation_steps, self._clock = 60 * minutes, validation_steps, clock
        self._final_validations = final_validations
        self._start = clock() - seconds_used
        self._lap_start = clock()
        self._steps: deque[float] = deque()
        self._last: dict[Work, float] = {}
        self._next_planning = self.seconds_used + FIRST_INTERVAL * self._seconds  # in seconds since the start
        self._planned_rest = 0.0  # seconds of training that were left at the last plan

    @property
    def seconds_used(self) -> float:
        """Seconds since the start of the run; a pause between stop and resume does not count."""
        return self._clock() - self._start

    def record(self, work: Work) -> None:
        """Record work that started when the previous work ended and ends now."""
        now = self._clock()
        seconds, self._lap_start = now - self._lap_start, now
        self._last[work] = seconds
        if work == "validation":  # in steps, because a change of speed affects both
            self._validation_steps = seconds / max(self.seconds_per_step, 1e-9)
        if work == "step":
            self._steps.append(seconds)
            total = sum(self._steps)
            while len(self._steps) > 2 * MIN_MEASURED and total - self._steps[0] > WINDOW_SHARE * self._seconds:
                total -= self._steps.popleft()

    def replan(self, schedule: StepSchedule, step: int) -> StepPlan | None:
        """Record a step; return a new plan if one is due and the current plan no longer fits."""
        self.record("step")
        if step >= schedule.steps:
            return None  # this was the last step: its schedule is at the end and cannot be stretched
        plan = self.make_plan(schedule, step) if self.should_plan(schedule.steps - step) else schedule.plan
        return None if plan == schedule.plan else plan

    def should_plan(self, steps_left: int) -> bool:
        """Return whether the run should replan, given the remaining steps and time."""
        if len(self._steps) < MIN_MEASURED:
            return self.seconds_used >= self._seconds
        seconds = min(self._training_seconds, steps_left * self.seconds_per_step)
        if seconds >= self._planned_rest / 2 and self.seconds_used < self._next_planning:
            return seconds < self.seconds_per_step
        self._next_planning, self._planned_rest = self.seconds_used + PLANNING_INTERVAL * self._seconds, seconds
        return True

    def make_plan(self, schedule: StepSchedule, step: int) -> StepPlan:
        """Return a plan for the time remaining after `step`, or the current plan if it still fits."""
        current, seconds, position = schedule.plan, self._training_seconds, schedule.position(step)
        if seconds < self.seconds_per_step:
            return StepPlan(step, step, position, current.stride)
        validations = max(0.0, (schedule.train.steps - position) / schedule.validation_interval - 1)  # not the last one
        regular_seconds = validations * (self._seconds_of("validation") + self._seconds_of("checkpoint"))
        stride = max(1, -int(-regular_seconds // (VALIDATION_SHARE * seconds)))
        stride = current.stride if stride == current.stride - 1 else stride  # no change back and forth
        total = step + max(1, int((seconds - regular_seconds / stride) / self.seconds_per_step))
        if schedule.train.max_steps is not None:
            total = max(step, min(total, schedule.train.max_steps))
        tolerated_seconds = max(TOLERANCE * self._seconds, self._seconds_of("checkpoint"))
        if abs(total - current.steps) * self.seconds_per_step <= tolerated_seconds and stride == current.stride:
            return current
        return StepPlan(total, step, position, stride)

    @property
    def seconds_left(self) -> float:
        """Remaining seconds."""
        return self._seconds - self.seconds_used

    @property
    def seconds_per_step(self) -> float:
        """Mean seconds per step over the last steps."""
        return sum(self._steps) / max(len(self._steps), 1)

    def _seconds_of(self, work: Work) -> float:
        if work == "validation":
            return self._validation_steps * self.seconds_per_step
        return self._last.get(work, 0.0)

    @property
    def _training_seconds(self) -> float:
        """Remaining seconds for steps and regular validations, excluding the work after the last step."""
        final_seconds = self._final_validations * self._seconds_of("validation") + 2 * self._seconds_of("checkpoint")
        return self.seconds_left - final_seconds - EXIT_SECONDS
