"""Create trainers over a small corpus, ready for the first update."""

from pathlib import Path
from typing import Any

from regard.store.run_folder import RunFolder
from regard.train.data import prepare_data
from regard.train.events import Event
from regard.train.fit import _resolve
from regard.train.trainer import Trainer
from tests.train.runs import make_small_run, write_corpus


def make_trainer(
    task: str, folder: Path, changes: dict[str, Any] | None = None, events: list[Event] | None = None
) -> Trainer:
    """Create the trainer of a small run, with changes to its settings."""
    run = make_small_run(task, write_corpus(folder / "corpus"), changes)
    run_folder = RunFolder(folder / "run")
    run_folder.path.mkdir()
    emit = (lambda _: None) if events is None else events.append
    run_data = prepare_data(run, run_folder, emit)
    return Trainer(_resolve(run, run_data), run_folder, run_data, emit)
