"""Checkpoints: folders `step-N` that are written atomically and verified before use.

model.safetensors      weights
optimizer.safetensors  optimizer state
ema.safetensors        exponential moving average, if the run has one
state.json             progress, settings and versions
manifest.json          size and sha256 of each file, written last

A checkpoint is written under a temporary name, flushed, sealed with its manifest and renamed. Loading verifies the
manifest; a damaged checkpoint is never used: the previous one is loaded instead, with a warning. Nothing is pickled.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import create_folder, explain_full_disk, read_json, verify
from regard.store.run_folder import parse_step
from regard.store.weights import load_tensors, save_tensors

Tensors = Mapping[str, Tensor]
Result = TypeVar("Result")
TENSOR_FILES = {"weights": "model.safetensors", "optimizer": "optimizer.safetensors", "ema": "ema.safetensors"}
STATE_FILE = "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to resume exactly."""

    weights: Tensors
    optimizer: Tensors
    ema: Tensors
    state: dict[str, Any]  # plain JSON values


class Checkpoints:
    """The checkpoints of a run. Creating this object and reading change nothing on disk.

    Args:
        folder: Where they are stored; the first `save` creates it.
        warn: Called with a text for every checkpoint that cannot be used.
        weight_bytes: Size of the model's weights; files that are too large for such a model are refused as damaged.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None], weight_bytes: int | None = None) -> None:
        self.folder = folder
        self._warn = warn
        # An optimizer stores at most two values per weight: a larger file belongs to another model.
        self._max_bytes = None if weight_bytes is None else 3 * weight_bytes + limits.DOCUMENT
        self._faults: dict[int, str] = {}  # of the damaged checkpoints, by step

    def steps(self) -> list[int]:
        """Return the updates that have a checkpoint, in ascending order."""
        if not self.folder.is_dir():
            return []
        steps = (parse_step(path.name) for path in self.folder.iterdir() if path.is_dir())
        return sorted(step for step in steps if step is not None)

    @property
    def last_change(self) -> int | None:
        """When a checkpoint was last created, renamed or removed, in nanoseconds; None without a folder."""
        return self.folder.stat().st_mtime_ns if self.folder.exists() else None

    def path(self, step: int) -> Path:
        """Return the folder of a checkpoint."""
        return self.folder / f"step-{step:08}"

    def save(self, step: int, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint; replaces one of the same step."""
        path, tensors = self.path(step), {file: getattr(checkpoint, name) for name, file in TENSOR_FILES.items()}
        state = json.dumps(checkpoint.state, indent=1, sort_keys=True) + "\n"
        size = sum(tensor.nbytes for group in tensors.values() for tensor in group.values()) + len(state)
        with explain_full_disk(path, size), create_folder(path, replace=True) as folder:
            for file, group in tensors.items():
                save_tensors(group, folder / file)
            (folder / STATE_FILE).write_text(state, encoding="utf-8")
        return path

    def load(self, step: int) -> Checkpoint:
        """Load a checkpoint.

        Raises:
            DamagedError: If a file differs from what was written.
        """
        state = self.load_state(step)
        return Checkpoint(
            **{name: load_tensors(self.path(step) / file) for name, file in TENSOR_FILES.items()},
            state=state,
        )

    def load_state(self, step: int) -> dict[str, Any]:
        """Load only the state of a checkpoint; verifies all files."""
        verify(self.path(step), max_bytes=self._max_bytes)
        path = self.path(step) / STATE_FILE
        try:
            state = read_json(path)
        except FileNotFoundError:  # another process has replaced the checkpoint since it was verified
            raise DamagedError("The file is missing.", where=str(path), fix="Read the checkpoint again.") from None
        if not isinstance(state, dict):
            raise DamagedError("The file holds no state of a run.", where=str(path), fix="Restore it from a backup.")
        progress = state.get("progress")
        update = progress.get("update", step) if isinstance(progress, dict) else step
        if type(update) is int and update != step:
            what, fix = f"It holds the state of update {str(update)[:20]}.", "Give the folder its own name."
            raise DamagedError(what, where=str(path), fix=fix)
        return state

    def load_weights(self, step: int) -> dict[str, Tensor]:
        """Load only the weights of a checkpoint; verifies all files."""
        verify(self.path(step), max_bytes=self._max_bytes)
        return load_tensors(self.path(step) / TENSOR_FILES["weights"])

    def load_newest(self, steps: Iterable[int] | None = None) -> tuple[int, Checkpoint] | None:
        """Load the newest intact checkpoint (of `steps`, or of all), warn of damaged ones; None without any."""
        return self._read_newest(self.load, self.steps() if steps is None else sorted(steps))

    def load_newest_state(self) -> dict[str, Any] | None:
        """Load only the state of the newest intact checkpoint; None without any."""
        newest = self._read_newest(self.load_state, self.steps())
        return None if newest is None else newest[1]

    def intact_steps(self, steps: Iterable[int]) -> list[int]:
        """Return the steps whose checkpoints are intact; warns of the others."""
        return [step for step in steps if self._read_if_intact(self.load_state, step) is not None]

    def set_aside_after(self, step: int) -> None:
        """Rename the later checkpoints, which are damaged, to step-N.damaged: rotation must not count them."""
        for later in self.steps():
            if later > step:
                path = self.path(later)
                damaged_path = path.with_name(f"{path.name}.damaged")
                shutil.rmtree(damaged_path, ignore_errors=True)
                path.rename(damaged_path)

    def _read_newest(self, read: Callable[[int], Result], steps: list[int]) -> tuple[int, Result] | None:
        for step in reversed(steps):
            if (content := self._read_if_intact(read, step)) is not None:
                return step, content
        if steps:
            raise RegardError(
                f"No intact checkpoint is left. The newest is damaged: {self._faults[steps[-1]]}",
                where=str(self.folder),
                fix="Restore one from a backup, or start a new run in another folder.",
            )
        return None

    def _read_if_intact(self, read: Callable[[int], Result], step: int) -> Result | None:
        try:
            return read(step)
        except DamagedError as error:
            self._faults[step] = error.what
            self._warn(f"Checkpoint {self.path(step).name} is damaged and not used. {error.what}")
            return None

    def remove(self, step: int) -> None:
        """Remove a checkpoint; it is renamed first, so that a kill leaves no incomplete checkpoint under its name."""
        path = self.path(step)
        removed_path = path.with_name(f"{path.name}.gone")
        shutil.rmtree(removed_path, ignore_errors=True)
        path.rename(removed_path)
        shutil.rmtree(removed_path)

    def rotate(self, keep: set[int]) -> None:
        """Remove all checkpoints except `keep` and the newest, and leftovers of killed writes and removals."""
        for leftover in (*self.folder.glob("step-*.gone"), *self.folder.glob("step-*.tmp")):
            shutil.rmtree(leftover)
        steps = self.steps()
        for step in steps[:-1]:
            if step not in keep:
                self.remove(step)
