"""Learning rate schedules as pure functions of the update number: there is no state to save or resume.

>>> from regard.config.training import LinearConfig
>>> [learning_rate(LinearConfig(peak=1.0, warmup=2), update, updates=6, width=128) for update in range(1, 7)]
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


def learning_rate(schedule: ScheduleConfig, update: float, *, updates: int, width: int) -> float:
    """Return the learning rate of one update.

    Args:
        schedule: The schedule and its parameters.
        update: Number of the update, counted from 1; a position between two updates if a plan stretches the schedule.
        updates: Total updates of the run; used by schedules that decay towards the end.
        width: Model width; used by the Noam schedule.

    Raises:
        RegardError: If `update` is not positive.
    """
    if update <= 0:
        raise RegardError(f"There is no update {update}.", fix="Updates are counted from 1.")
    match schedule:
        case InverseSqrtConfig(peak=peak, warmup=warmup):
            return peak * min(update / warmup, math.sqrt(warmup / update))
        case NoamConfig(factor=factor, warmup=warmup):
            return factor * width**-0.5 * min(update**-0.5, update * warmup**-1.5)
        case CosineConfig(peak=peak, warmup=warmup, end=end):
            cosine = (1 + math.cos(math.pi * _decay(update, max(warmup, 1), updates))) / 2
            return peak * min(_warmup(update, warmup), end + (1 - end) * cosine)
        case LinearConfig(peak=peak, warmup=warmup, end=end):
            progress = _decay(update, max(warmup, 1), updates)
            return peak * min(_warmup(update, warmup), 1 - (1 - end) * progress)
        case ConstantConfig(peak=peak, warmup=warmup):
            return peak * _warmup(update, warmup)
        case _:
            assert_never(schedule)


def _warmup(update: float, warmup: int) -> float:
    """Return the share of the peak that warmup has reached; 1 from update `warmup` on."""
    return 1.0 if update >= warmup else update / warmup


def _decay(update: float, start: int, end: int) -> float:
    """Return how far the decay from update `start` (0) to update `end` (1) has come."""
    if update <= start:
        return 0.0
    return min(1.0, (update - start) / (end - start)) if end > start else 1.0
