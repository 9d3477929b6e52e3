"""Other people's boards: TensorBoard, Weights & Biases, MLflow. Each is a listener, and each is an extra.

`metrics.jsonl` is always written; these only hear the same numbers. A resumed run goes on in the same experiment: its
id is kept in the run's folder. Nothing leaves the machine unless the board's own settings say so: W&B is offline unless
WANDB_API_KEY or WANDB_MODE is set, MLflow writes into the run's folder unless MLFLOW_TRACKING_URI is.
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
from regard.config.tables import read_toml, suggest
from regard.store.run_folder import RunFolder
from regard.train.events import Event, Finished, Listener, Started, Updated, Validated

Board = Literal["tensorboard", "wandb", "mlflow"]
Send = Callable[[int, Mapping[str, float]], None]
IDS = "boards.json"


def tracker(board: str, folder: Path) -> Listener:
    """A listener that forwards a run's numbers to a board."""
    if board not in get_args(Board):
        raise RegardError(f"There is no board '{board}'.", fix=suggest(board, list(get_args(Board))))
    return _Tracker(board, folder)


class _Tracker:
    """Opens its board when the run starts, and closes it when it ends."""

    def __init__(self, board: str, folder: Path) -> None:
        self._folder = folder
        self._opener = {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow}[board]
        import_optional(board, board, f"Tracking with {board}")  # say now that it is missing
        self._module = import_module(_MODULES[board])
        self._send: Send | None = None
        self._close: Callable[[], object] = lambda: None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            settings = read_toml(RunFolder(self._folder).run)
            self._send, self._close = self._opener(self._module, self._folder, settings, event.update)
        if self._send is None:
            return
        if isinstance(event, Updated):
            numbers = {"loss": event.loss, "rate": event.rate, "gradient": event.gradient}
            numbers["tokens_per_second"] = event.tokens / max(event.seconds, 1e-9)
            self._send(event.update, {f"train/{name}": value for name, value in numbers.items()})
        elif isinstance(event, Validated):
            self._send(event.update, {f"validation/{name}": value for name, value in event.scores.items()})
        elif isinstance(event, Finished):
            self._close()


_MODULES = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb", "mlflow": "mlflow"}
_Opened = tuple[Send, Callable[[], object]]


def _tensorboard(module: Any, folder: Path, _settings: Mapping[str, Any], update: int) -> _Opened:
    writer = module.SummaryWriter(str(folder / "tensorboard"), purge_step=update + 1)

    def send(step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)

    return send, writer.close


def _wandb(module: Any, folder: Path, settings: Mapping[str, Any], _update: int) -> _Opened:
    mode = None if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_MODE") else "offline"
    run = module.init(
        project=os.environ.get("WANDB_PROJECT", "regard"),
        name=folder.name,
        dir=str(folder),
        config=dict(settings),
        mode=mode,
        id=known_as(folder, "wandb"),
        resume="allow",
    )
    remember(folder, "wandb", run.id)
    return lambda step, numbers: run.log(dict(numbers), step=step), run.finish


def _mlflow(module: Any, folder: Path, settings: Mapping[str, Any], _update: int) -> _Opened:
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        module.set_tracking_uri(f"sqlite:///{(folder / 'mlflow.db').resolve()}")
    module.set_experiment("regard")
    known = known_as(folder, "mlflow")
    run = module.start_run(run_id=known) if known else module.start_run(run_name=folder.name)
    remember(folder, "mlflow", run.info.run_id)
    if not known:
        module.log_dict(dict(settings), "run.json")
    return lambda step, numbers: module.log_metrics(dict(numbers), step=step), module.end_run


def known_as(folder: Path, board: str) -> str | None:
    """The id of this run's experiment on a board, if it has been there."""
    return _ids(folder).get(board)


def remember(folder: Path, board: str, name: str) -> None:
    """Keep that id for the next start."""
    known = {**_ids(folder), board: name}
    write_atomic(folder / IDS, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())


def _ids(folder: Path) -> dict[str, str]:
    """The experiment of each board that this run is known to."""
    path = folder / IDS
    if not path.exists():
        return {}
    fix = "Remove it: the run then begins new experiments on its boards."
    ids = read_json(path, fix)
    if not isinstance(ids, dict) or not all(isinstance(name, str) for name in ids.values()):
        raise DamagedError("The file does not name the run's experiments.", where=str(path), fix=fix)
    return ids
