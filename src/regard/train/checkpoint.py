"""Checkpoints: folders `step-N` that are whole or absent, proven unchanged before they are used.

model.safetensors      the weights
optimizer.safetensors  what the optimizer remembers
ema.safetensors        the moving average, where there is one
state.json             everything else: a few numbers
manifest.json          size and sha256 of each, written last

Each is written under a temporary name, flushed, sealed and renamed. Loading verifies; a damaged checkpoint is never
used, and the one before it is taken instead, loudly. Nothing here is a pickle.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import create_folder, explain_full_disk, read_json, recover, verify
from regard.store.weights import load_tensors, save_tensors

Tensors = Mapping[str, Tensor]
Result = TypeVar("Result")
TENSOR_FILES = {"weights": "model.safetensors", "optimizer": "optimizer.safetensors", "ema": "ema.safetensors"}
STATE_FILE = "state.json"
_STEP_NAME = re.compile(r"step-(\d{8,})")


@dataclass(frozen=True)
class Checkpoint:
    """All that a run needs to go on as if it had never stopped."""

    weights: Tensors
    optimizer: Tensors
    ema: Tensors
    state: dict[str, Any]  # plain JSON values


class Checkpoints:
    """The checkpoints of a run, oldest first."""

    def __init__(self, folder: Path, warn: Callable[[str], None], weight_bytes: int | None = None) -> None:
        """`say` hears of every checkpoint that cannot be used; `size` is that of the model's weights in bytes."""
        self.folder = folder
        self._warn = warn
        # An optimizer remembers two numbers a weight: what is larger belongs to no checkpoint of this model.
        self._max_bytes = None if weight_bytes is None else 3 * weight_bytes + limits.DOCUMENT
        self._faults: dict[int, str] = {}  # of those that were looked at
        folder.mkdir(parents=True, exist_ok=True)
        for old_folder in folder.glob("*.old"):
            recover(old_folder.with_suffix(""))

    def steps(self) -> list[int]:
        """The updates that have a checkpoint."""
        matches = (_STEP_NAME.fullmatch(path.name) for path in self.folder.iterdir() if path.is_dir())
        return sorted(int(match[1]) for match in matches if match is not None)

    def path(self, step: int) -> Path:
        """The folder of one of them."""
        return self.folder / f"step-{step:08}"

    def save(self, step: int, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint; one of the same step is replaced."""
        path, tensors = self.path(step), {file: getattr(checkpoint, name) for name, file in TENSOR_FILES.items()}
        state = json.dumps(checkpoint.state, indent=1, sort_keys=True) + "\n"
        size = sum(tensor.nbytes for group in tensors.values() for tensor in group.values()) + len(state)
        with explain_full_disk(path, size), create_folder(path, replace=True) as folder:
            for file, group in tensors.items():
                save_tensors(group, folder / file)
            (folder / STATE_FILE).write_text(state, encoding="utf-8")
        return path

    def load(self, step: int) -> Checkpoint:
        """Read one of them; raises `DamagedError` unless it is exactly what was written."""
        state = self.load_state(step)
        return Checkpoint(
            **{name: load_tensors(self.path(step) / file) for name, file in TENSOR_FILES.items()},
            state=state,
        )

    def load_state(self, step: int) -> dict[str, Any]:
        """The numbers alone of one of them; all of it is verified."""
        verify(self.path(step), max_bytes=self._max_bytes)
        path = self.path(step) / STATE_FILE
        state = read_json(path)
        if not isinstance(state, dict):
            raise DamagedError("This is no state of a run.", where=str(path), fix="Take a good copy.")
        return state

    def load_weights(self, step: int) -> dict[str, Tensor]:
        """The weights alone of one of them; all of it is verified."""
        verify(self.path(step), max_bytes=self._max_bytes)
        return load_tensors(self.path(step) / TENSOR_FILES["weights"])

    def load_newest(self, steps: Iterable[int] | None = None) -> tuple[int, Checkpoint] | None:
        """The newest that is whole (of all, or of some), passing over damaged ones loudly; None if there is none."""
        return self._read_newest(self.load, self.steps() if steps is None else sorted(steps))

    def load_newest_state(self) -> dict[str, Any] | None:
        """The numbers alone of the newest that is whole."""
        newest = self._read_newest(self.load_state, self.steps())
        return None if newest is None else newest[1]

    def intact_steps(self, steps: Iterable[int]) -> list[int]:
        """Those of these that are what was written; the others are named."""
        return [step for step in steps if self._read_if_intact(self.load_state, step) is not None]

    def set_aside_after(self, step: int) -> None:
        """Give later ones, which are damaged, another name: they must not pass for the newest ones that are kept."""
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
                f"None of the {len(steps)} checkpoints is whole. Of the newest: {self._faults[steps[-1]]}",
                where=str(self.folder),
                fix="Bring one back from a copy, or start anew in another folder.",
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
        """Remove one of them, so that a kill half-way leaves none that looks whole."""
        path = self.path(step)
        removed_path = path.with_name(f"{path.name}.gone")
        shutil.rmtree(removed_path, ignore_errors=True)
        path.rename(removed_path)
        shutil.rmtree(removed_path)

    def rotate(self, keep: set[int]) -> None:
        """Remove all but these and the newest; what a kill left half-written or half-removed goes too."""
        for leftover in (*self.folder.glob("*.gone"), *self.folder.glob("*.tmp")):
            shutil.rmtree(leftover)
        steps = self.steps()
        for step in steps[:-1]:
            if step not in keep:
                self.remove(step)
