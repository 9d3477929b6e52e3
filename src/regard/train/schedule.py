"""The learning rate of every update, as a formula of its number: nothing to save, nothing to resume.

>>> from regard.config.training import Linear
>>> [learning_rate(Linear(peak=1.0, warmup=2), update, updates=6, width=128) for update in range(1, 7)]
[0.5, 1.0, 0.75, 0.5, 0.25, 0.0]
"""

import math
from typing import assert_never

from regard.base.errors import RegardError
from regard.config.training import Constant, Cosine, InverseSqrt, Linear, Noam, Schedule, WarmupStableDecay


def learning_rate(schedule: Schedule, update: int, *, updates: int, width: int) -> float:
    """The rate of update number `update`; the first of a run is 1, the last is `updates`.

    `updates` and `width` matter only to kinds that know the end of the run or the width of the model.
    """
    if update < 1:
        raise RegardError(f"There is no update {update}.", fix="Updates are counted from 1.")
    match schedule:
        case InverseSqrt(peak=peak, warmup=warmup):
            return peak * min(update / warmup, math.sqrt(warmup / update))
        case Noam(factor=factor, warmup=warmup):
            return factor * width**-0.5 * min(update**-0.5, update * warmup**-1.5)
        case Cosine(peak=peak, warmup=warmup, end=end):
            cosine = (1 + math.cos(math.pi * _decay(update, max(warmup, 1), updates))) / 2
            return peak * min(_warmup(update, warmup), end + (1 - end) * cosine)
        case Linear(peak=peak, warmup=warmup, end=end):
            progress = _decay(update, max(warmup, 1), updates)
            return peak * min(_warmup(update, warmup), 1 - (1 - end) * progress)
        case WarmupStableDecay(peak=peak, warmup=warmup, decay=decay, end=end):
            progress = _decay(update, max(updates - decay, 1), updates)
            return peak * min(_warmup(update, warmup), 1 - (1 - end) * progress)
        case Constant(peak=peak, warmup=warmup):
            return peak * _warmup(update, warmup)
        case _:
            assert_never(schedule)


def _warmup(update: int, warmup: int) -> float:
    """How much of the peak is reached: all of it at update `warmup`, at once if that is 0."""
    return 1.0 if update >= warmup else update / warmup


def _decay(update: int, start: int, end: int) -> float:
    """How far an update is on the way from the top (0) to the last update (1)."""
    if update <= start:
        return 0.0
    return min(1.0, (update - start) / (end - start)) if end > start else 1.0
