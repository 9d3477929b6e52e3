"""The run folder: settings, tokenized data, metrics and checkpoints.

run.toml          every setting, defaults included
accepted.json     sha256 of the settings that the user accepted when the run was resumed with other ones
corpus.json       size and sha256 of every corpus file
python-data/      examples that were Python objects (`regard.train(data=[...])`), as JSON Lines
corrections/      corrections and what else the next `regard tune --suggestions` needs, as JSON Lines
distilled/        the teachers' translations of the training sources (only with teachers), sealed
tokenizer/        the tokenizers of the run
shards/           training and validation data as tokens
validation.jsonl  the first validation examples as text
metrics.jsonl     losses and scores, without clock times: a resumed run writes the same bytes as an uninterrupted one
timing.jsonl      seconds, waits, memory and MFU of every rank
checkpoints/      step-N: weights, optimizer state and position in the data, sealed
best/             the best model so far; `regard translate` opens it
.best-ctranslate2/  the best model for CTranslate2, which commands write and replace (`regard.exchange.engine_cache`)
film/             outputs and attention of some examples at some steps (only with `train.film_points`)
average/          the mean of the last checkpoints
blame/            models of the same run without some samples (`regard blame --prove`)
profile/          what each rank did in some steps (only with `regard train --profile`)
metrics.prom      the newest metrics for Prometheus (only with `regard train --track prometheus`)
adapter/          LoRA weights of the best model (only with LoRA)
log.txt           the output of `regard train`
extensions.json   names of the loss and metrics that `regard.train` was given as functions
removal.json      which samples the run leaves out, with hashes (`regard train RUN --without LIST`)
finished.json     written last: the run has ended and cleaned up
parts.json        parts per batch, after memory ran out on one of several ranks
trackers.json     ids of the run in experiment trackers, which write to tensorboard/, wandb/ and mlflow.db
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.files import explain_full_disk, flush_file, flush_folder, is_temporary, recover
from regard.base.locks import lock_folder
from regard.store.model_path import BEST, RUN

# Digits are ASCII, and each step has one name; suffixes mark files that a killed process may leave behind.
_CHECKPOINT_NAME = re.compile(
    r"step-(?P<step>[0-9]{8}|[1-9][0-9]{8,15})(?P<suffix>\.(?:tmp|old|gone|damaged))?", re.ASCII
)


class RunFolder:
    """The paths of a run's files and folders, described in the module docstring."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = path / RUN
        self.accepted = path / "accepted.json"
        self.corpus = path / "corpus.json"
        self.python_data = path / "python-data"
        self.corrections = path / "corrections"
        self.distilled = path / "distilled"
        self.distilled_chunks = path / "distilled-chunks"  # exists only until `distilled` is complete
        self.tokenizer = path / "tokenizer"
        self.shards = path / "shards"
        self.examples = path / "validation.jsonl"
        self.metrics = path / "metrics.jsonl"
        self.timing = path / "timing.jsonl"
        self.log = path / "log.txt"
        self.extensions = path / "extensions.json"
        self.removal = path / "removal.json"
        self.finished = path / "finished.json"
        self.micro_batches = path / "parts.json"
        self.checkpoints = path / "checkpoints"
        self.film = path / "film"
        self.trackers = path / "trackers.json"
        self.profile = path / "profile"
        self.prometheus = path / "metrics.prom"
        self.tensorboard = path / "tensorboard"
        self.wandb = path / "wandb"
        self.mlflow = path / "mlflow.db"
        self.best = path / BEST
        self.average = path / "average"
        self.adapter = path / "adapter"

    def is_new(self) -> bool:
        """Whether a run can start here: the folder does not exist, or contains only files written during startup."""
        if not self.path.exists():
            return True
        return self.path.is_dir() and all(
            is_temporary(path) or path == self.python_data for path in self.path.iterdir()
        )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against other processes, and clean up after a killed run."""
        self.path.mkdir(parents=True, exist_ok=True)
        with lock_folder(self.path), explain_full_disk(self.path):
            try:
                self._check_no_links()
                self._check_checkpoint_names()
            except PermissionError as error:
                hint = "Make sure that you have read and write permission for the run folder."
                raise RegardError(f"{error.strerror}.", location=str(error.filename), hint=hint) from error
            self._clean_up()
            yield

    def _clean_up(self) -> None:
        """Undo or complete interrupted writes and removals."""
        models = (self.best, self.average, self.adapter)
        replaced = (path.with_suffix("") for path in self.checkpoints.glob("step-*.old"))
        for path in (*models, *replaced):
            recover(path)
        folders = (path.with_name(f"{path.name}.tmp") for path in (*models, self.tokenizer, self.distilled))
        removed = (path for suffix in ("tmp", "gone") for path in self.checkpoints.glob(f"step-*.{suffix}"))
        for path in (*filter(Path.exists, folders), *removed):
            shutil.rmtree(path)
        for leftover in (*self.path.glob(".*.tmp"), *self.film.glob(".*.tmp")):
            leftover.unlink()

    def _check_no_links(self) -> None:
        """Raise an error for links: a run must not write to, truncate or delete a file outside its folder."""
        databases = [self.path / f"{self.mlflow.name}{suffix}" for suffix in ("", "-journal", "-wal", "-shm")]
        journals = (self.metrics, self.timing, self.log)
        files = (
            self.run, self.accepted, self.corpus, self.examples, self.trackers, self.extensions, self.finished,
            self.micro_batches, self.removal, self.prometheus,
            *journals, *databases,
        )  # fmt: skip
        atomic = (self.best, self.average, self.adapter, self.tokenizer, self.distilled)
        leftovers = (path.with_name(f"{path.name}.{suffix}") for path in atomic for suffix in ("tmp", "old"))
        folders = (
            *atomic,
            *leftovers,
            self.python_data,
            self.distilled_chunks,
            self.shards,
            self.checkpoints,
            self.film,
            self.profile,
        )
        tracked = list(_iter_tree(self.tensorboard, self.wandb))
        for path in (*files, *tracked, *_iter_tree(*folders)):
            if path.is_symlink() and _is_inside(path, self.wandb):
                continue  # W&B links its newest run and its log
            if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
                hint = "Replace it with the actual file or folder; only the run folder itself may be a link."
                raise RegardError("This is not a regular file or folder.", location=str(path), hint=hint)
        for path in files:
            if path.is_dir():
                raise RegardError("This is not a regular file.", location=str(path), hint="Move this folder elsewhere.")
        for path in (*folders, self.tensorboard, self.wandb):
            _check_folder(path)
        for path in (*journals, *databases, *tracked):
            if path.is_file() and not path.is_symlink() and path.stat().st_nlink > 1:
                hint = "Replace it with a copy; otherwise the run would also change the linked file."
                raise RegardError("The file is hard-linked elsewhere.", location=str(path), hint=hint)

    def _check_checkpoint_names(self) -> None:
        """Raise an error for entries with invalid checkpoint names, which a resumed run would skip."""
        for path in self.checkpoints.glob("step-*"):
            if _CHECKPOINT_NAME.fullmatch(path.name) is None:
                hint = "Move it out of this folder, or use a checkpoint name such as step-00000100."
                raise RegardError("This is not a checkpoint name.", location=str(path), hint=hint)
            _check_folder(path)


def parse_step(name: str) -> int | None:
    """Return the step of a complete checkpoint from the name of its folder; None for any other name.

    >>> parse_step("step-00000100"), parse_step("step-00000100.tmp"), parse_step("step-100")
    (100, None, None)
    """
    match = _CHECKPOINT_NAME.fullmatch(name)
    return None if match is None or match["suffix"] else int(match["step"])


def _check_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise RegardError("This is not a folder.", location=str(path), hint="Move this file elsewhere.")


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a path is inside a real folder; a link must also point inside it."""
    return path != folder and not folder.is_symlink() and path.resolve().is_relative_to(folder.resolve())


def _iter_tree(*folders: Path) -> Iterator[Path]:
    """Yield these folders and everything in them; links are not followed."""
    for folder in folders:
        yield folder
        for directory, subfolders, files in os.walk(folder):
            yield from (Path(directory) / name for name in (*subfolders, *files))


class NullWriter:
    """A writer that discards all records."""

    size = 0

    def write(self, **record: Any) -> None:
        """Write nothing."""

    def truncate(self, size: int) -> None:
        """Do nothing."""


class JsonlWriter:
    """An append-only JSON Lines file that can be truncated to its size at a checkpoint."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()
        flush_folder(path.parent)

    def write(self, **record: Any) -> None:
        """Append a record as one line; equal records give equal bytes."""
        with self._path.open("ab") as file:
            file.write((json.dumps(record, ensure_ascii=False) + "\n").encode())

    @property
    def size(self) -> int:
        """The size in bytes, after flushing to disk."""
        flush_file(self._path)
        return self._path.stat().st_size

    def truncate(self, size: int) -> None:
        """Remove lines written after a checkpoint; the resumed run writes them again."""
        if self._path.stat().st_size < size:
            raise RegardError(
                f"Lines are missing from the file: it has {self._path.stat().st_size} bytes; at the checkpoint it had "
                f"{size}.",
                location=str(self._path),
                hint="Restore the file from a copy; the run appends to it.",
            )
        with self._path.open("ab") as file:
            file.truncate(size)
