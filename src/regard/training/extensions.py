"""Functions of the caller that a run uses: a loss and metrics.

A run folder cannot store functions. `extensions.json` records their names, and a resumed run needs them again.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from regard.base.arguments import check_callable, check_type
from regard.base.errors import RegardError
from regard.base.files import read_json, write_atomic
from regard.config.run import RunConfig
from regard.config.task_spec import Metric, find_spec
from regard.measure.metric import MetricFunction

if TYPE_CHECKING:
    from torch import Tensor

LossFunction = Callable[["Tensor", "Tensor"], "Tensor"]
"""Takes logits (N, C) and labels (N), returns the loss of each label, (N)."""


@dataclass(frozen=True)
class Extensions:
    """The functions of one run."""

    loss: LossFunction | None = None
    metrics: Mapping[str, MetricFunction] = field(default_factory=dict)

    @classmethod
    def from_arguments(cls, loss: Any, metrics: Any) -> "Extensions":
        """Check and take the arguments `loss` and `metrics` of `regard.train`."""
        if loss is not None:
            check_callable("loss", loss, "a function of logits and labels")
        check_type("metrics", metrics, Mapping | None, "functions by name, {'exact_match': function}")
        for name, function in (metrics or {}).items():
            check_type("metrics", name, str, "functions by name")
            check_callable(f"metrics[{name!r}]", function, "a function of outputs and references")
            if name in get_args(Metric):
                raise RegardError(f"'{name}' is a metric of Regard.", hint="Choose another name for your metric.")
        return cls(loss, dict(metrics or {}))

    def __bool__(self) -> bool:
        return self.loss is not None or bool(self.metrics)

    @property
    def names(self) -> dict[str, Any]:
        """Names of the functions, as the run folder records them."""
        loss = None if self.loss is None else getattr(self.loss, "__qualname__", type(self.loss).__qualname__)
        return {"loss": loss, "metrics": sorted(self.metrics)}

    def check(self, run: RunConfig) -> None:
        """Raise an error if the task of a run cannot use the functions."""
        task = run.model.task
        if self.loss is not None:
            from regard.tasks.task import Task, find_task  # imports torch: only when needed

            if type(find_task(task)).loss is not Task.loss:
                message = f"The task '{task}' has a loss of its own kind, without logits: `loss` cannot replace it."
                raise RegardError(message, hint="Override `loss` in a task of your own: docs/extending/task.md.")
        if self.metrics and not {"bleu", "f1"} & {*find_spec(task).metrics}:
            message = f"A validation of the task '{task}' has no outputs to compare: `metrics` cannot score it."
            raise RegardError(message, hint="Use `metrics` with translation, classification or tagging.")
        if self.metrics and task == "translation" and not run.validation.sentences:
            hint = "Set validation.sentences, for example to 200."
            raise RegardError("`metrics` need translations, but validation.sentences is 0.", hint=hint)

    def check_resumed(self, path: Path, *, force: bool) -> None:
        """Raise an error if a run is resumed with other functions than it was started with."""
        try:
            before = read_json(path)
        except FileNotFoundError:
            before = Extensions().names
        if before == self.names or force:
            return
        hint = "Pass the same functions to regard.resume(folder, loss=..., metrics=...), or use force."
        given, stored = json.dumps(self.names), json.dumps(before)
        raise RegardError(f"The run was started with {stored}, not with {given}.", location=str(path), hint=hint)

    def record(self, path: Path) -> None:
        """Write the names of the functions; without functions there is no file."""
        if self:
            write_atomic(path, json.dumps(self.names).encode() + b"\n")
        else:
            path.unlink(missing_ok=True)
