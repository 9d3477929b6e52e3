"""Progress of a run as plain values, stored in checkpoints alongside tensors and settings."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pydantic import TypeAdapter

from regard.base.errors import DamagedError
from regard.data.batches.order import DataPosition
from regard.training.step_schedule import StepPlan

MAX_COUNT = 2**53  # the largest integer that every JSON parser and float64 represent exactly
MAX_EPOCH = 2**31  # times the weight of a source it must fit into 64 bits


@dataclass
class Progress:
    """Run state; together with a checkpoint's tensors and settings it determines all later steps."""

    step: int = 0  # optimizer steps so far
    tokens: int = 0  # tokens (or texts, or words) with a label seen so far
    position: DataPosition | None = None  # in the data; None is the start
    best: float | None = None  # best value of validation.metric
    best_step: int = 0
    best_scores: dict[str, float] = field(default_factory=dict)
    since_best: int = 0  # validations since the best
    losses: list[float] = field(default_factory=list)  # recent losses, for the spike detector
    spikes: int = 0  # in a row
    loss_limit: float | None = None  # the run diverges if the mean loss stays above it
    healthy_step: int = 0  # the last step with a mean loss below the limit
    recoveries: list[int] = field(default_factory=list)  # steps that the run went back to after it had diverged
    scaler: dict[str, float] = field(default_factory=dict)  # state of the float16 gradient scaler
    journal: int = 0  # size of metrics.jsonl in bytes
    plans: list[StepPlan] = field(default_factory=list)  # changes of the number of steps, with `train.minutes`
    seconds: float = 0.0  # of the time budget used so far, with `train.minutes`
    finished: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any], *, location: str) -> "Progress":
        """Read the progress from a checkpoint's JSON state.

        Raises:
            DamagedError: If fields are missing, unknown, of the wrong type or out of range.
        """
        try:
            values = dict(state["progress"])
            if "recoveries" not in values:  # of an earlier version
                values |= {"spikes": 0, "loss_limit": None, "healthy_step": values["step"], "recoveries": []}
            if not isinstance(state["run"], dict) or {item.name for item in fields(cls)} != values.keys():
                raise TypeError("unexpected fields")
            if any(abs(number) > MAX_COUNT for number in _iter_integers(values)):
                raise ValueError("a number is too large")
            # Only checked: `values` are restored exactly as written.
            checked = TypeAdapter(cls).validate_json(json.dumps(values), strict=True)
            counts = [checked.step, checked.tokens, checked.best_step, checked.since_best, checked.spikes]
            counts += [checked.step - checked.healthy_step, checked.healthy_step, *checked.recoveries]
            position = checked.position
            counts += [checked.journal]
            if position:
                counts += [position.epoch, position.window, position.window_start]
                counts += [position.next_global_batch - position.window_start]
            for plan in checked.plans:
                counts += [plan.since, plan.steps - max(plan.since, 1), plan.stride - 1]
            amounts = [checked.seconds, checked.loss_limit or 0.0, *(plan.position for plan in checked.plans)]
            if not all(math.isfinite(amount) for amount in amounts):
                raise ValueError("a number is not finite")
            if min(counts) < 0 or (position is not None and position.epoch > MAX_EPOCH):
                raise ValueError("a count is out of range")
        except (KeyError, TypeError, ValueError) as error:
            hint = "Restore the checkpoint from a backup, or start a new run."
            raise DamagedError("The checkpoint has no valid progress.", location=location, hint=hint) from error
        return cls(**{**values, "position": position, "plans": checked.plans})


def _iter_integers(value: Any) -> Iterator[int]:
    """Yield every integer in nested lists and dictionaries."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iter_integers(inner)
