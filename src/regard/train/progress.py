"""Where a run stands, as plain values: what a checkpoint keeps beside tensors."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pydantic import TypeAdapter

from regard.base.errors import DamagedError
from regard.data.batches.order import DataPosition


@dataclass
class Progress:
    """A run's numbers. Everything that a later update depends on is here, in the weights or in the settings."""

    update: int = 0  # steps of the optimizer so far
    tokens: int = 0  # target tokens learned from so far
    position: DataPosition | None = None  # in the data; None is the beginning
    best: float | None = None  # of the metric that the run goes by
    best_update: int = 0
    best_scores: dict[str, float] = field(default_factory=dict)
    since_best: int = 0  # validations since the best
    losses: list[float] = field(default_factory=list)  # the last ones, for the guard
    spikes: int = 0
    scaler: dict[str, float] = field(default_factory=dict)  # of float16
    journal: int = 0  # bytes of metrics.jsonl
    finished: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any], *, where: str) -> "Progress":
        """From the state of a checkpoint, as JSON; whatever is not of its kind there is damage."""
        try:
            values = dict(state["progress"])
            if not isinstance(state["run"], dict) or {item.name for item in fields(cls)} != values.keys():
                raise TypeError("other fields")
            checked = TypeAdapter(cls).validate_python(values)  # a copy: numbers must come back as they were written
            counts = [checked.update, checked.tokens, checked.best_update, checked.since_best, checked.spikes]
            position = checked.position
            counts += [checked.journal, *([position.epoch, position.next_global_batch] if position else [])]
            if min(counts) < 0:
                raise ValueError("less than nothing")
        except (KeyError, TypeError, ValueError) as error:
            fix = "Bring the checkpoint back from a copy, or start anew."
            raise DamagedError("The checkpoint does not say where the run stands.", where=where, fix=fix) from error
        return cls(**{**values, "position": position})
