"""Progress of a run as plain values, which a checkpoint stores beside tensors and settings."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pydantic import TypeAdapter

from regard.base.errors import DamagedError
from regard.data.batches.order import DataPosition


@dataclass
class Progress:
    """The state of a run; with the tensors and settings of a checkpoint it determines all later updates."""

    update: int = 0  # optimizer steps so far
    tokens: int = 0  # tokens (or texts, or words) with a label seen so far
    position: DataPosition | None = None  # in the data; None is the start
    best: float | None = None  # best value of validation.metric
    best_update: int = 0
    best_scores: dict[str, float] = field(default_factory=dict)
    since_best: int = 0  # validations since the best
    losses: list[float] = field(default_factory=list)  # recent losses, for the spike detector
    spikes: int = 0
    scaler: dict[str, float] = field(default_factory=dict)  # state of the float16 gradient scaler
    journal: int = 0  # size of metrics.jsonl in bytes
    finished: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any], *, where: str) -> "Progress":
        """Read the progress from a checkpoint's JSON state.

        Raises:
            DamagedError: If fields are missing, unknown or of the wrong type.
        """
        try:
            values = dict(state["progress"])
            if not isinstance(state["run"], dict) or {item.name for item in fields(cls)} != values.keys():
                raise TypeError("unexpected fields")
            checked = TypeAdapter(cls).validate_python(values)  # only checked: `values` are restored exactly as written
            counts = [checked.update, checked.tokens, checked.best_update, checked.since_best, checked.spikes]
            position = checked.position
            counts += [checked.journal, *([position.epoch, position.next_global_batch] if position else [])]
            if min(counts) < 0:
                raise ValueError("negative count")
        except (KeyError, TypeError, ValueError) as error:
            fix = "Restore the checkpoint from a backup, or start a new run."
            raise DamagedError("The checkpoint holds no valid progress of a run.", where=where, fix=fix) from error
        return cls(**{**values, "position": position})
