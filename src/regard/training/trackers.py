"""Trackers: TensorBoard, Weights & Biases, MLflow, Prometheus. Each is a listener and an optional dependency.

`metrics.jsonl` is always written; trackers receive the same metrics. A resumed run continues the same experiment: its
id is stored in the run folder. By default no data leaves the machine: W&B is offline unless WANDB_API_KEY or WANDB_MODE
is set, and MLflow writes into the run folder unless MLFLOW_TRACKING_URI is set.
"""

import json
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from regard.base.errors import DamagedError, RegardError
from regard.base.extras import import_optional
from regard.base.files import read_json, write_atomic
from regard.config.toml_file import read_toml, suggest
from regard.store.run_folder import RunFolder
from regard.training.events import Event, Finished, Listener, Started, StepFinished, Timed, Validated

TrackerName = Literal["tensorboard", "wandb", "mlflow", "prometheus"]
Send = Callable[[int, Mapping[str, float]], None]


def make_tracker(name: str, folder: Path) -> Listener:
    """Return a listener that logs a run's metrics to a tracker."""
    if name not in get_args(TrackerName):
        raise RegardError(f"There is no tracker '{name}'.", hint=suggest(name, list(get_args(TrackerName))))
    if name == "prometheus":
        import_optional("prometheus_client", "serve", "Tracking with prometheus")
        from regard.training.prometheus import PrometheusListener  # only if it is installed

        return PrometheusListener(RunFolder(folder).prometheus)
    return _Tracker(name, folder)


class _Tracker:
    """Opens the tracker when the run starts and closes it when the run ends."""

    def __init__(self, name: str, folder: Path) -> None:
        self._folder = folder
        self._open = {"tensorboard": _open_tensorboard, "wandb": _open_wandb, "mlflow": _open_mlflow}[name]
        import_optional(name, name, f"Tracking with {name}")  # fail now if it is not installed
        self._module = import_module(_MODULES[name])
        self._send: Send | None = None
        self._close: Callable[[], object] = lambda: None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            settings = read_toml(RunFolder(self._folder).run)
            self._send, self._close = self._open(self._module, self._folder, settings, event.step)
        if self._send is None:
            return
        if isinstance(event, StepFinished):
            metrics = {"loss": event.loss, "learning_rate": event.learning_rate, "gradient_norm": event.gradient_norm}
            metrics["tokens_per_second"] = event.input_tokens / max(event.seconds, 1e-9)
            self._send(event.step, {f"train/{name}": value for name, value in metrics.items()})
        elif isinstance(event, Timed):
            self._send(event.step, {f"timing/{name}": value for name, value in event.summary.items()})
        elif isinstance(event, Validated):
            self._send(event.step, {f"validation/{name}": value for name, value in event.scores.items()})
        elif isinstance(event, Finished):
            self._close()


_MODULES = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb", "mlflow": "mlflow"}
_Connection = tuple[Send, Callable[[], object]]


def _open_tensorboard(module: Any, folder: Path, _settings: Mapping[str, Any], last_step: int) -> _Connection:
    writer = module.SummaryWriter(str(RunFolder(folder).tensorboard), purge_step=last_step + 1)

    def send(step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)

    return send, writer.close


def _open_wandb(module: Any, folder: Path, settings: Mapping[str, Any], _step: int) -> _Connection:
    mode = None if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_MODE") else "offline"
    run = module.init(
        project=os.environ.get("WANDB_PROJECT", "regard"),
        name=folder.name,
        dir=str(folder),
        config=dict(settings),
        mode=mode,
        id=experiment_id(folder, "wandb"),
        resume="allow",
    )
    save_experiment_id(folder, "wandb", run.id)
    return lambda step, metrics: run.log(dict(metrics), step=step), run.finish


def _open_mlflow(module: Any, folder: Path, settings: Mapping[str, Any], _step: int) -> _Connection:
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        module.set_tracking_uri(f"sqlite:///{RunFolder(folder).mlflow.resolve()}")
    module.set_experiment("regard")
    run_id = experiment_id(folder, "mlflow")
    run = module.start_run(run_id=run_id) if run_id else module.start_run(run_name=folder.name)
    save_experiment_id(folder, "mlflow", run.info.run_id)
    if not run_id:
        module.log_dict(dict(settings), "run.json")
    return lambda step, metrics: module.log_metrics(dict(metrics), step=step), module.end_run


def experiment_id(folder: Path, tracker: str) -> str | None:
    """Return this run's experiment id in a tracker, if any."""
    return _read_experiment_ids(folder).get(tracker)


def save_experiment_id(folder: Path, tracker: str, run_id: str) -> None:
    """Store the experiment id for a resumed run."""
    ids = {**_read_experiment_ids(folder), tracker: run_id}
    write_atomic(RunFolder(folder).trackers, (json.dumps(ids, indent=1, sort_keys=True) + "\n").encode())


def _read_experiment_ids(folder: Path) -> dict[str, str]:
    """Read this run's experiment ids of all trackers."""
    path = RunFolder(folder).trackers
    if not path.exists():
        return {}
    hint = "Remove the file; the run then starts new experiments."
    ids = read_json(path, hint)
    if not isinstance(ids, dict) or not all(isinstance(name, str) for name in ids.values()):
        raise DamagedError("The file does not contain experiment ids.", location=str(path), hint=hint)
    return ids
