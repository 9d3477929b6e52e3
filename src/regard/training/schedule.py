"""Learning rate schedules as pure functions of the step number: there is no state to save or resume.

>>> from regard.config.training import LinearConfig
>>> [learning_rate(LinearConfig(lr=1.0, warmup=2), step, steps=6, d_model=128) for step in range(1, 7)]
[0.5, 1.0, 0.75, 0.5, 0.25, 0.0]
"""

import math
from typing import assert_never

from regard.base.errors import RegardError
from regard.config.training import (
    ConstantConfig,
    CosineConfig,
    InverseSqrtConfig,
    LinearConfig,
    NoamConfig,
    ScheduleConfig,
)


def learning_rate(schedule: ScheduleConfig, step: float, *, steps: int, d_model: int) -> float:
    """Return the learning rate of one step.

    Args:
        schedule: The schedule and its parameters.
        step: Step number, counted from 1; may be fractional if a plan stretches the schedule.
        steps: Total number of steps; used by schedules that decay towards the end.
        d_model: Width of the model; used by the Noam schedule.

    Raises:
        RegardError: If `step` is not positive.
    """
    if step <= 0:
        raise RegardError(f"There is no step {step}.", hint="Steps are counted from 1.")
    match schedule:
        case InverseSqrtConfig(lr=peak, warmup=warmup):
            return peak * min(step / warmup, math.sqrt(warmup / step))
        case NoamConfig(factor=factor, warmup=warmup):
            return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
        case CosineConfig(lr=peak, warmup=warmup, end=end):
            cosine = (1 + math.cos(math.pi * _decay(step, max(warmup, 1), steps))) / 2
            return peak * min(_warmup(step, warmup), end + (1 - end) * cosine)
        case LinearConfig(lr=peak, warmup=warmup, end=end):
            progress = _decay(step, max(warmup, 1), steps)
            return peak * min(_warmup(step, warmup), 1 - (1 - end) * progress)
        case ConstantConfig(lr=peak, warmup=warmup):
            return peak * _warmup(step, warmup)
        case _:
            assert_never(schedule)


def get_rate_setting(schedule: ScheduleConfig) -> tuple[str, float]:
    """Return the name and value of the setting that scales the learning rate.

    >>> get_rate_setting(LinearConfig(lr=0.5))
    ('train.schedule.lr', 0.5)
    """
    if isinstance(schedule, NoamConfig):
        return "train.schedule.factor", schedule.factor
    return "train.schedule.lr", schedule.lr


def _warmup(step: float, warmup: int) -> float:
    """Return the warmup factor; 1 from step `warmup` on."""
    return 1.0 if step >= warmup else step / warmup


def _decay(step: float, start: int, end: int) -> float:
    """Return the decay progress from step `start` (0) to step `end` (1)."""
    if step <= start:
        return 0.0
    return min(1.0, (step - start) / (end - start)) if end > start else 1.0
