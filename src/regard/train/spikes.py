"""Spikes: losses that are not finite or far above those before them. They never reach the weights.

A guard remembers the last losses, and knows what a loss may be. What is done about a spike is the run's policy.

>>> guard = SpikeDetector(Skip(window=8))
>>> [guard.check(loss, 1.0) for loss in (4.0, 4.1, 3.9, 4.0, 4.2, 3.8, 4.0, 4.1)] == [None] * 8
True
>>> guard.check(40.0, 1.0)
'the loss is 40.00, and the last 8 were 4.01 on average (deviation 0.12)'
>>> guard.check(4.0, float("nan"))
'the gradient is nan'
"""

import math
import statistics
from collections import deque
from collections.abc import Iterable

from regard.config.training import Skip, SpikePolicy

# Of the mean. Batches are not alike (short texts are harder, word for word), and late in a run the losses hardly move:
# below one and a half times the usual loss (with 6 sigmas) a batch is hard, and must be learned from.
MIN_RELATIVE_DEVIATION = 1 / 12
MIN_DEVIATION = (
    0.05  # nats: where hardly anything is left to learn, one wrong label is many times the usual loss, and no spike
)


class SpikeDetector:
    """Watches the losses of a run."""

    def __init__(self, settings: SpikePolicy | None = None, losses: Iterable[float] = (), spikes: int = 0) -> None:
        self.settings = settings or Skip()
        self.losses = deque(losses, maxlen=self.settings.window)
        self.spikes = spikes

    def check(self, loss: float, gradient_norm: float) -> str | None:
        """What is wrong with an update before it is made; None remembers its loss as a good one."""
        for name, value in (("loss", loss), ("gradient", gradient_norm)):
            if not math.isfinite(value):
                return f"the {name} is {value}"
        if len(self.losses) == self.settings.window:
            mean = statistics.fmean(self.losses)
            deviation = math.dist(self.losses, [mean] * len(self.losses)) / math.sqrt(len(self.losses))
            if loss > mean + self.settings.sigmas * max(deviation, MIN_RELATIVE_DEVIATION * abs(mean), MIN_DEVIATION):
                history = f"the last {len(self.losses)} were {mean:.2f} on average (deviation {deviation:.2f})"
                return f"the loss is {loss:.2f}, and {history}"
        self.losses.append(loss)
        return None

    @property
    def is_out_of_patience(self) -> bool:
        """Whether there were more spikes than a run survives."""
        return self.spikes > self.settings.max_spikes
