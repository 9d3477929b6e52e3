"""Spike detection: a loss that is not finite, or far above the recent losses, never updates the weights.

The detector compares each loss with a window of recent ones; `train.spikes` says how the trainer responds.

>>> detector = SpikeDetector(SkipConfig(window=8))
>>> [detector.check(loss, 1.0) for loss in (4.0, 4.1, 3.9, 4.0, 4.2, 3.8, 4.0, 4.1)] == [None] * 8
True
>>> detector.check(40.0, 1.0)
'the loss is 40.00, and the last 8 were 4.01 on average (deviation 0.12)'
>>> detector.check(4.0, float("nan"))
'the gradient is nan'
"""

import math
import statistics
from collections import deque
from collections.abc import Iterable

from regard.config.training import SkipConfig, SpikePolicyConfig

MAX_DEVIATIONS = 6.0  # a loss that is higher above the mean is a spike
# Relative to the mean. Batches differ (short texts have a higher loss per token), and late in a run the loss is nearly
# constant: below 1.5 times the mean a batch is merely hard, and the model must train on it.
MIN_RELATIVE_DEVIATION = 1 / 12
# In nats. If the mean loss is near zero, a single wrong label costs many times the mean, but is not a spike.
MIN_DEVIATION = 0.05


class SpikeDetector:
    """Detects spikes in the losses of a run."""

    def __init__(
        self, settings: SpikePolicyConfig | None = None, losses: Iterable[float] = (), spikes: int = 0
    ) -> None:
        self.settings = settings or SkipConfig()
        self.losses = deque(losses, maxlen=self.settings.window)
        self.spikes = spikes

    def check(self, loss: float, gradient_norm: float) -> str | None:
        """Return why a step is a spike, or None; without a spike, the loss is added to the window."""
        for name, value in (("loss", loss), ("gradient", gradient_norm)):
            if not math.isfinite(value):
                return f"the {name} is {value}"
        if len(self.losses) == self.settings.window:
            mean = statistics.fmean(self.losses)
            deviation = math.dist(self.losses, [mean] * len(self.losses)) / math.sqrt(len(self.losses))
            if loss > mean + MAX_DEVIATIONS * max(deviation, MIN_RELATIVE_DEVIATION * abs(mean), MIN_DEVIATION):
                history = f"the last {len(self.losses)} were {mean:.2f} on average (deviation {deviation:.2f})"
                return f"the loss is {loss:.2f}, and {history}"
        self.losses.append(loss)
        return None

    @property
    def is_out_of_patience(self) -> bool:
        """Whether the run had more spikes than `max_spikes`."""
        return self.spikes > self.settings.max_spikes
