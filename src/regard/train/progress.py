"""Where a run stands, as plain values: what a checkpoint keeps beside tensors."""

from dataclasses import asdict, dataclass, field
from typing import Any

from regard.data.order import Position


@dataclass
class Progress:
    """A run's numbers. Everything that a later update depends on is here, in the weights or in the settings."""

    update: int = 0  # steps of the optimizer so far
    tokens: int = 0  # target tokens learned from so far
    position: Position | None = None  # in the data; None is the beginning
    best: float | None = None  # of the metric that the run goes by
    best_update: int = 0
    best_scores: dict[str, float] = field(default_factory=dict)
    waited: int = 0  # validations since the best
    losses: list[float] = field(default_factory=list)  # the last ones, for the guard
    spikes: int = 0
    scaler: dict[str, float] = field(default_factory=dict)  # of float16
    journal: int = 0  # bytes of metrics.jsonl
    finished: bool = False

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Progress":
        """From JSON."""
        position = values["position"]
        return cls(**{**values, "position": None if position is None else Position(**position)})
