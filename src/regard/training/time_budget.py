"""Train for a given time (`train.minutes`): plan the number of steps from the speed that the run really has.

The settings hold the first plan, `train.steps`. The trainer measures steps, validations and checkpoints, and plans
again a few times. A new plan takes effect at a checkpoint that holds it: a resumed run follows the plans that are
recorded, and `metrics.jsonl` lists them.

All counts in the settings (warmup, decay, intervals of validation and checkpoints) are positions in a schedule of
`train.steps` positions. A plan of `steps` in total that is made at step u0 stretches the rest of this schedule:

    position(u) = position(u0) + (u - u0) * (train.steps - position(u0)) / (steps - u0)

The learning rate is therefore continuous at u0 and ends where it would have ended without new plans.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

PLANNING_INTERVAL = 0.08  # share of the time between plans; the run also plans again when half of the rest is over
FIRST_INTERVAL = 0.02  # the same for the first plan
MIN_MEASURED = 3  # steps that are measured before the first plan
WINDOW_SHARE = 0.06  # the speed is the mean over this share of the time, so that a change of speed shows soon
VALIDATION_SHARE = 0.15  # of the remaining time at most; more would leave too little for steps
EXIT_SECONDS = 1.0  # from the last checkpoint to the end of the process
TOLERANCE = 0.005  # a new plan that moves the end by less than this share of the time is not worth a checkpoint

Work = Literal["step", "validation", "checkpoint"]


@dataclass(frozen=True)
class StepSchedule:
    """The total number of steps of a run, from the step on at which the plan was made."""

    steps: int
    since: int = 0  # the step at which the plan was made
    position: float = 0.0  # position in the schedule at that step
    stride: int = 1  # only every stride-th validation and checkpoint of the settings takes place

    def schedule_position(self, step: int, schedule_steps: int) -> float:
        """Return the position of a step in the schedule of the settings.

        >>> StepSchedule(100).schedule_position(30, 100)
        30.0
        >>> slower = StepSchedule(65, since=30, position=30.0)
        >>> slower.schedule_position(31, 100), slower.schedule_position(65, 100)
        (32.0, 100.0)
        """
        if step <= self.since:
            return self.position
        return self.position + (step - self.since) * (schedule_steps - self.position) / (self.steps - self.since)

    def is_due(self, step: int, every: int, schedule_steps: int) -> bool:
        """Return whether this step is the first at or after a multiple of `every * stride` positions.

        >>> [step for step in range(1, 11) if StepSchedule(10).is_due(step, 4, 10)]
        [4, 8]
        """
        positions = [self.schedule_position(number, schedule_steps) for number in (step - 1, step)]
        before, now = (position // (every * self.stride) for position in positions)
        return now > before


class TimeBudget:
    """Measures the work of a run and plans how many steps fit into its time.

    Args:
        minutes: The whole time of the run, from the command to its end.
        seconds_used: Seconds that the run has used before this moment.
        validation_steps: The cost of a validation in steps, until one was measured.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        minutes: float,
        seconds_used: float = 0.0,
        validation_steps: float = 0.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._seconds, self._validation_steps, self._clock = 60 * minutes, validation_steps, clock
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
        """Record that work ended now, which began when the previous work ended."""
        now = self._clock()
        seconds, self._lap_start = now - self._lap_start, now
        self._last[work] = seconds
        if work == "validation":  # in steps: if the machine becomes faster or slower, both do
            self._validation_steps = seconds / max(self.seconds_per_step, 1e-9)
        if work == "step":
            self._steps.append(seconds)
            total = sum(self._steps)
            while len(self._steps) > 2 * MIN_MEASURED and total - self._steps[0] > WINDOW_SHARE * self._seconds:
                total -= self._steps.popleft()

    def should_plan(self, steps_left: int, final_validations: int) -> bool:
        """Return whether the run should plan again, before `steps_left` more steps or the time end it."""
        if len(self._steps) < MIN_MEASURED:
            return self.seconds_used >= self._seconds
        seconds = min(self._training_seconds(final_validations), steps_left * self.seconds_per_step)
        if seconds >= self._planned_rest / 2 and self.seconds_used < self._next_planning:
            return seconds < self.seconds_per_step
        self._next_planning, self._planned_rest = self.seconds_used + PLANNING_INTERVAL * self._seconds, seconds
        return True

    def make_plan(
        self,
        current: StepSchedule,
        step: int,
        *,
        schedule_steps: int,
        validation_interval: int,
        final_validations: int,
        max_steps: int | None,
    ) -> StepSchedule:
        """Return the plan for the rest of the time; the current one if it still fits.

        Args:
            current: The plan so far.
            step: Steps done.
            schedule_steps: Positions of the schedule (`train.steps`).
            validation_interval: Positions between validations.
            final_validations: Validations after the last step: of the model, and of the mean of checkpoints.
            max_steps: Upper limit of the total.
        """
        seconds = self._training_seconds(final_validations)
        position = current.schedule_position(step, schedule_steps)
        if seconds < self.seconds_per_step:
            return StepSchedule(step, step, position, current.stride)
        validations = max(0.0, (schedule_steps - position) / validation_interval - 1)  # without the last one
        regular_seconds = validations * (self._seconds_of("validation") + self._seconds_of("checkpoint"))
        stride = max(1, -int(-regular_seconds // (VALIDATION_SHARE * seconds)))
        stride = current.stride if stride == current.stride - 1 else stride  # no change back and forth
        total = step + max(1, int((seconds - regular_seconds / stride) / self.seconds_per_step))
        total = total if max_steps is None else max(step, min(total, max_steps))
        tolerated_seconds = max(TOLERANCE * self._seconds, self._seconds_of("checkpoint"))
        if abs(total - current.steps) * self.seconds_per_step <= tolerated_seconds and stride == current.stride:
            return current
        return StepSchedule(total, step, position, stride)

    @property
    def seconds_left(self) -> float:
        """Seconds until the time is over."""
        return self._seconds - self.seconds_used

    @property
    def seconds_per_step(self) -> float:
        """The mean of the last steps."""
        return sum(self._steps) / max(len(self._steps), 1)

    def _seconds_of(self, work: Work) -> float:
        if work == "validation":
            return self._validation_steps * self.seconds_per_step
        return self._last.get(work, 0.0)

    def _training_seconds(self, final_validations: int) -> float:
        """Return the seconds for steps and regular validations, beside what follows the last step."""
        final_seconds = final_validations * self._seconds_of("validation") + 2 * self._seconds_of("checkpoint")
        return self.seconds_left - final_seconds - EXIT_SECONDS
