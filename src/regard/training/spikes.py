"""Detects loss spikes (a single bad batch) and divergence (broken weights).

A step whose loss or gradient is not finite, or whose loss is far above the recent losses, is a *spike* and does not
update the weights. Skipping it cannot repair weights that an earlier step broke. The run has *diverged* if

- 8 consecutive steps are spikes, although the weights did not change in between, or
- the mean of the last 16 losses has been above a limit for 32 steps: at least 15 % above its lowest value so far.

The trainer then rewinds to an earlier checkpoint, skips the batches since then and lowers the learning rate. PaLM
(Chowdhery et al. 2022, section 5.1) rewound about 100 steps and skipped 200 to 500 batches at the same learning rate,
because its spikes depended on both the model state and the batches. In a small run the learning rate is the likely
cause. In 44 recorded runs with 12,462 losses, the mean stayed at most 5 % above its lowest value for 32 steps.

>>> detector, progress = SpikeDetector(window=8), Progress()
>>> [detector.check(progress, loss, 1.0) for loss in (4.0, 4.1, 3.9, 4.0, 4.2, 3.8, 4.0, 4.1)] == [None] * 8
True
>>> detector.check(progress, 40.0, 1.0)
'the loss is 40.00, and the mean of the last 8 is 4.01 (deviation 0.12)'
>>> detector.check(progress, 4.0, float("nan"))
'the gradient is nan'
"""

import math
import statistics
from dataclasses import dataclass
from itertools import pairwise

from regard.training.checkpoint.progress import Progress

MAX_DEVIATIONS = 6.0  # standard deviations above the mean at which a loss is a spike
# Relative to the mean. Batches differ (short texts have a higher loss per token), and late in a run the loss is nearly
# constant. A loss below 1.5 times the mean is a hard batch, which the model should train on.
MIN_RELATIVE_DEVIATION = 1 / 12
# In nats. If the mean loss is near zero, a single wrong label costs many times the mean, but is not a spike.
MIN_DEVIATION = 0.05
MAX_SPIKES_IN_A_ROW = 8
MAX_RELATIVE_RISE = 0.15  # relative to the mean; a model that collapses to label frequencies loses more
MAX_RECOVERIES = 4
RATE_FACTOR = 1 / 3  # learning rate factor per recovery; two recoveries correct a rate that is ten times too high
MAX_RISE = 3.0  # in deviations: the lowest of many means of 16 losses is about one deviation below a typical one


@dataclass(frozen=True)
class SpikeDetector:
    """Detects spikes and divergence from the recent losses in the run's progress."""

    window: int = 128

    @property
    def mean_steps(self) -> int:
        """Number of losses in the mean that shows divergence."""
        return self.window // 8

    def check(self, progress: Progress, loss: float, gradient_norm: float) -> str | None:
        """Return why a step is a spike, or None after adding its loss to the window."""
        fault = self._find_fault(progress.losses, loss, gradient_norm)
        progress.spikes = 0 if fault is None else progress.spikes + 1
        if fault is None:
            progress.losses = [*progress.losses, loss][-self.window :]
        return fault

    def _find_fault(self, losses: list[float], loss: float, gradient_norm: float) -> str | None:
        for name, value in (("loss", loss), ("gradient", gradient_norm)):
            if not math.isfinite(value):
                return f"the {name} is {value}"
        if len(losses) == self.window:
            mean = statistics.fmean(losses)
            deviation = math.dist(losses, [mean] * len(losses)) / math.sqrt(len(losses))
            if loss > mean + MAX_DEVIATIONS * max(deviation, MIN_RELATIVE_DEVIATION * abs(mean), MIN_DEVIATION):
                history = f"the mean of the last {len(losses)} is {mean:.2f} (deviation {deviation:.2f})"
                return f"the loss is {loss:.2f}, and {history}"
        return None

    def find_divergence(self, progress: Progress) -> str | None:
        """Return why the run has diverged, or None. Call it after every step."""
        if progress.spikes >= MAX_SPIKES_IN_A_ROW:
            return f"{progress.spikes} spikes in a row"
        count, losses = self.mean_steps, progress.losses[-self.mean_steps :]
        mean = statistics.fmean(losses) if losses else math.inf
        if len(losses) == count:
            # From differences of neighbors, because the losses of the first steps also have a trend.
            deviation = math.sqrt(sum((b - a) ** 2 for a, b in pairwise(losses)) / 2 / max(count - 1, 1))
            limit = mean + max(MAX_RELATIVE_RISE * abs(mean), MIN_DEVIATION, MAX_RISE * deviation)
            progress.loss_limit = limit if progress.loss_limit is None else min(limit, progress.loss_limit)
        if progress.loss_limit is None or mean <= progress.loss_limit:
            progress.healthy_step = progress.step
        elif (steps := progress.step - progress.healthy_step) >= self.window // 4:
            return (
                f"the mean of the last {count} losses is {mean:.2f}, and has been above {progress.loss_limit:.2f} for "
                f"{steps} steps (15 % or more above its lowest value)"
            )
        return None
