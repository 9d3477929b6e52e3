"""A trainer over a small corpus, ready to make its first update."""

from pathlib import Path
from typing import Any

from regard.store.run_folder import RunFolder
from regard.train.corpora import corpora
from regard.train.events import Event
from regard.train.fit import _resolved
from regard.train.trainer import Trainer
from tests.train.runs import corpus, small_run


def trainer(
    task: str, folder: Path, changes: dict[str, Any] | None = None, heard: list[Event] | None = None
) -> Trainer:
    """Of a small run, with changes to its settings."""
    run = small_run(task, corpus(folder / "corpus"), changes)
    place = RunFolder(folder / "run")
    place.path.mkdir()
    tell = (lambda _: None) if heard is None else heard.append
    read = corpora(run, place, tell)
    return Trainer(_resolved(run, read), place, read, tell)
