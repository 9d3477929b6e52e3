"""A run as a folder: what was decided, what happened, and what can be gone on from.

run.toml        every knob, nothing left open
corpus.json     size and sha256 of every file that was read
vocabulary/     what the run learned or was given to cut text with
shards/         train and validation as tokens
metrics.jsonl   what was learned, free of clocks: a resumed run writes the same bytes as an undisturbed one
timing.jsonl    how fast it went
checkpoints/    step-N: weights, optimizer and position, sealed
best/           the best model so far: `regard translate` opens it
average/        the mean of the last checkpoints
log.txt         what a person was told
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.files import explain_full_disk, flush_file, flush_folder, lock_folder, recover
from regard.store.model_folder import BEST, RUN


@dataclass(frozen=True)
class RunFolder:
    """The places in it."""

    path: Path

    @property
    def run(self) -> Path:
        """Every knob."""
        return self.path / RUN

    @property
    def corpus(self) -> Path:
        """What the files of the corpus were."""
        return self.path / "corpus.json"

    @property
    def vocabulary(self) -> Path:
        """The vocabularies."""
        return self.path / "vocabulary"

    @property
    def shards(self) -> Path:
        """`train` and `validation` as tokens."""
        return self.path / "shards"

    @property
    def examples(self) -> Path:
        """The first validation examples as text."""
        return self.path / "validation.jsonl"

    @property
    def metrics(self) -> Path:
        """What was learned."""
        return self.path / "metrics.jsonl"

    @property
    def timing(self) -> Path:
        """How fast."""
        return self.path / "timing.jsonl"

    @property
    def log(self) -> Path:
        """What a person was told."""
        return self.path / "log.txt"

    @property
    def checkpoints(self) -> Path:
        """What can be gone on from."""
        return self.path / "checkpoints"

    @property
    def best(self) -> Path:
        """The best model so far."""
        return self.path / BEST

    @property
    def average(self) -> Path:
        """The mean of the last checkpoints."""
        return self.path / "average"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Nobody else may train in this folder meanwhile; what a killed run left half-made goes or is undone."""
        self.path.mkdir(parents=True, exist_ok=True)
        with lock_folder(self.path), explain_full_disk(self.path):
            self._check_no_links()
            recover(self.best)
            recover(self.average)
            for leftover in self.path.glob(".*.tmp"):
                leftover.unlink()
            yield

    def _check_no_links(self) -> None:
        """What a run writes, cuts and removes must be its own, and not lead to somebody's file elsewhere."""
        files = (self.run, self.corpus, self.examples, self.metrics, self.timing, self.log)
        folders = [
            folder for path in (self.best, self.average) for folder in (path, path.with_name(f"{path.name}.old"))
        ]
        for path in (*files, *_iter_tree(self.vocabulary, self.shards, self.checkpoints, *folders)):
            if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
                fix = "Put the file or folder itself there; a run as a whole may be linked to."
                raise RegardError("This is no plain file or folder.", where=str(path), fix=fix)
        for path in (self.metrics, self.timing, self.log):
            if path.exists() and path.stat().st_nlink > 1:
                fix = "Copy it: what is appended here would be appended there as well."
                raise RegardError("The file has a second name elsewhere (a hard link).", where=str(path), fix=fix)


def _iter_tree(*folders: Path) -> Iterator[Path]:
    """These folders and everything in them; links are not followed."""
    for folder in folders:
        yield folder
        for directory, subfolders, files in os.walk(folder):
            yield from (Path(directory) / name for name in (*subfolders, *files))


class Journal:
    """A file of JSON lines that only grows, and can be cut back to where a checkpoint saw it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()
        flush_folder(path.parent)

    def write(self, **record: Any) -> None:
        """Append one line; the same record gives the same bytes."""
        with self._path.open("ab") as file:
            file.write((json.dumps(record, ensure_ascii=False) + "\n").encode())

    @property
    def size(self) -> int:
        """Bytes so far, all of them on disk."""
        flush_file(self._path)
        return self._path.stat().st_size

    def truncate(self, size: int) -> None:
        """Forget what was written after a checkpoint: it will be written again."""
        if self._path.stat().st_size < size:
            raise RegardError(
                f"The file has lost lines: {self._path.stat().st_size} bytes, and the checkpoint saw {size}.",
                where=str(self._path),
                fix="Bring the file back from a copy: the run's record goes on where the checkpoint saw it end.",
            )
        with self._path.open("ab") as file:
            file.truncate(size)
