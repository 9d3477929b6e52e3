"""Step schedule of a run: the number of steps, and which of them validate, save and keep a checkpoint.

All counts in the settings (warmup, decay, intervals of validation and checkpoints) are positions in a schedule of
`train.steps` positions. A plan of `steps` in total that is made at step u0 stretches the rest of this schedule:

    position(u) = position(u0) + (u - u0) * (train.steps - position(u0)) / (steps - u0)

The learning rate is therefore continuous at u0 and ends where it would have ended without new plans.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from regard.config.training import TrainingConfig


@dataclass(frozen=True)
class StepPlan:
    """The total number of steps, valid from the step at which the plan was made."""

    steps: int
    since: int = 0  # the step at which the plan was made
    position: float = 0.0  # position in the schedule at that step
    stride: int = 1  # only every stride-th validation and checkpoint of the settings is run

    def schedule_position(self, step: int, schedule_steps: int) -> float:
        """Return the position of a step in the schedule of the settings.

        >>> StepPlan(100).schedule_position(30, 100)
        30.0
        >>> slower = StepPlan(65, since=30, position=30.0)
        >>> slower.schedule_position(31, 100), slower.schedule_position(65, 100)
        (32.0, 100.0)
        """
        if step <= self.since:
            return self.position
        return self.position + (step - self.since) * (schedule_steps - self.position) / (self.steps - self.since)


@dataclass(frozen=True)
class StepSchedule:
    """Depends only on the settings and the plans, so a resumed run makes the same decisions as an uninterrupted one."""

    train: TrainingConfig
    validation_interval: int
    plans: Sequence[StepPlan] = ()  # made since the start of the run, with `train.minutes`

    @property
    def plan(self) -> StepPlan:
        """The current plan."""
        return self.plans[-1] if self.plans else StepPlan(self.train.steps)

    @property
    def steps(self) -> int:
        """The total number of steps."""
        return self.plan.steps

    @property
    def averages(self) -> bool:
        """Whether the run ends with the average of its last checkpoints."""
        return self.train.average > 1

    def position(self, step: int) -> float:
        """Return the position of a step in the schedule of the settings, with the current plan."""
        return self.plan.schedule_position(step, self.train.steps)

    def should_validate(self, step: int) -> bool:
        """Whether the run validates after this step."""
        return self._is_due(step, self.validation_interval)

    def should_film(self, step: int) -> bool:
        """Whether the training film has a frame after this step; 0 is the initial weights."""
        if not self.train.film_points:
            return False
        points = film_positions(self.train.film_points, self.train.steps)
        before, now = (bisect_right(points, position) for position in self._positions_around(step))
        return step in (0, self.steps) or now > before

    def should_save(self, step: int) -> bool:
        """Whether the run saves after this step; the last checkpoint is saved with the final state."""
        return self.is_regular(step) and (step < self.steps or self.averages)

    def is_regular(self, step: int) -> bool:
        """Whether an uninterrupted run saves here; checkpoints saved on a signal must not affect later results."""
        is_planned = any(plan.since == step for plan in self.plans)
        return step > 0 and (is_planned or self._is_due(step, self.train.save_every))

    def select_regular(self, saved: Iterable[int]) -> list[int]:
        """Return the saved checkpoints that an uninterrupted run would also have."""
        return [step for step in saved if self.is_regular(step)]

    def has_regular(self, step: int) -> bool:
        """Whether an uninterrupted run would have saved a checkpoint at or before `step`."""
        return any(self.is_regular(number) for number in range(1, step + 1))

    def select_last(self, saved: Iterable[int], step: int) -> int:
        """Return the last regular checkpoint at or before `step`; 0 is the initial weights."""
        return max((number for number in self.select_regular(saved) if number <= step), default=0)

    def select_kept(self, saved: Iterable[int], needed: int, recent: int) -> set[int]:
        """Return the checkpoints to keep: the last regular ones, all after `recent`, and one to rewind to.

        Args:
            saved: The checkpoints on disk.
            needed: If the run diverges, it rewinds to the last checkpoint at or before this step.
            recent: The same, if the coming steps turn out to be healthy.
        """
        regular = self.select_regular(saved)
        last = self.select_last(regular, recent)
        kept = {self.select_last(regular, needed), last, *(number for number in regular if number > last)}
        return kept.union(regular[-max(self.train.keep_checkpoints, self.train.average) :])

    def _is_due(self, step: int, every: int) -> bool:
        """Whether this step is the last, or the first at or after a multiple of `every` positions (times the stride).

        A resumed run may query steps before the current plan, for which the plan at that time applies.
        """
        interval = every * self._plan_at(step).stride
        before, now = self._positions_around(step)
        remaining = self.train.steps - now
        is_near_end = self.train.minutes is not None and remaining < interval / 2  # the last one is enough
        return step == self.steps or (now // interval > before // interval and not is_near_end)

    def _plan_at(self, step: int) -> StepPlan:
        """Return the plan that applied when this step was run."""
        first = StepPlan(self.train.steps)
        return next((plan for plan in reversed(self.plans) if plan.since < step), first)

    def _positions_around(self, step: int) -> tuple[float, float]:
        """Return the positions of the step before this one and of this one."""
        plan, total = self._plan_at(step), self.train.steps
        return plan.schedule_position(step - 1, total), plan.schedule_position(step, total)


@lru_cache(maxsize=8)
def film_positions(points: int, steps: int) -> tuple[int, ...]:
    """Return `points` different positions from 0 to `steps`, logarithmically spaced; at least 0, 1 and `steps`.

    >>> film_positions(6, 100), film_positions(40, 3)
    ((0, 1, 3, 10, 32, 100), (0, 1, 2, 3))
    """
    positions = [0, 1]
    while positions[-1] < steps:
        last, remaining = positions[-1], max(points - len(positions), 1)
        positions.append(max(last + 1, round(last * (steps / last) ** (1 / remaining))))
    return tuple(positions)
