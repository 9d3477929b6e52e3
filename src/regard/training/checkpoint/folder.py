"""Checkpoints: folders `step-N` that are written atomically and verified before use.

model.safetensors      weights
optimizer.safetensors  optimizer state
ema.safetensors        exponential moving average, if the run has one
state.json             progress, settings and versions
manifest.json          size and sha256 of each file, written last

Several ranks write one `shard-*.safetensors` file each instead of the first three (see `sharded.py`). Any number of
ranks, including one, can load both kinds.

A checkpoint is written under a temporary name, flushed, completed with a manifest and renamed. Loading verifies the
manifest; if a checkpoint is damaged, the previous one is loaded with a warning. Pickle is never used.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import FileEntry, create_folder, explain_full_disk, read_json, verify
from regard.store.run_folder import parse_step
from regard.store.weights import load_tensors, save_tensors
from regard.training.distributed.processes import SingleProcess

Tensors = Mapping[str, Tensor]
Result = TypeVar("Result")
TENSOR_FILES = {"weights": "model.safetensors", "optimizer": "optimizer.safetensors", "ema": "ema.safetensors"}
STATE_FILE = "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to resume a run exactly."""

    weights: Tensors
    optimizer: Tensors
    ema: Tensors
    state: dict[str, Any]  # plain JSON values


class Checkpoints:
    """The checkpoints of a run. Creating this object and reading from it do not change the disk.

    With several ranks, all ranks call each method together: rank 0 renames and removes, every rank writes, verifies and
    reads its part, and an error on one rank is raised on all.

    Args:
        folder: Where they are stored; the first `save` creates it.
        warn: Called with a message for every unusable checkpoint.
        weight_bytes: Size of the model's weights; files too large for this model are rejected as damaged.
        processes: The ranks that save and load together.
        parameters: The model's parameters by name; each rank loads only its own shards of them.
    """

    def __init__(
        self,
        folder: Path,
        warn: Callable[[str], None],
        weight_bytes: int | None = None,
        *,
        processes: SingleProcess | None = None,
        parameters: Tensors | None = None,
    ) -> None:
        self.folder = folder
        self._warn = warn
        # A file holds at most the weights, two values per weight of the optimizer, and the moving average.
        self._max_bytes = None if weight_bytes is None else 4 * weight_bytes + limits.DOCUMENT
        self._faults: dict[int, str] = {}  # of the damaged checkpoints, by step
        self._processes = SingleProcess() if processes is None else processes
        self._parameters: Tensors = {} if parameters is None else parameters

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, in ascending order."""
        names = [path.name for path in self.folder.iterdir() if path.is_dir()] if self.folder.is_dir() else []
        steps = sorted(step for name in names if (step := parse_step(name)) is not None)
        return list(self._processes.broadcast(steps))

    @property
    def last_change(self) -> int | None:
        """Time of the last creation, renaming or removal, in nanoseconds; None if the folder does not exist."""
        return self.folder.stat().st_mtime_ns if self.folder.exists() else None

    def path(self, step: int) -> Path:
        """Return the folder of a checkpoint."""
        return self.folder / f"step-{step:08}"

    def save(self, step: int, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint, replacing one of the same step."""
        path, tensors = self.path(step), {name: getattr(checkpoint, name) for name in TENSOR_FILES}
        state = json.dumps(checkpoint.state, indent=1, sort_keys=True) + "\n"
        size = sum(tensor.nbytes for group in tensors.values() for tensor in group.values()) + len(state)
        if self._processes.world_size > 1:
            self._save_sharded(path, tensors, state, size)
            return path
        with create_folder(path, replace=True, size=size) as folder:
            for name, group in tensors.items():
                save_tensors(group, folder / TENSOR_FILES[name])
            (folder / STATE_FILE).write_text(state, encoding="utf-8")
        return path

    def _save_sharded(self, path: Path, tensors: Mapping[str, Tensors], state: str, size: int) -> None:
        """Write every rank's file; rank 0 then writes the manifest and renames the folder."""
        from regard.training.checkpoint import sharded  # only here: one process never imports torch.distributed

        named = {f"{group}/{name}": tensor for group in tensors for name, tensor in tensors[group].items()}
        entries: dict[str, FileEntry] = {}
        with explain_full_disk(path, size), ExitStack() as stack:
            folder = path
            with self._agree():
                if self._processes.is_main:
                    folder = stack.enter_context(create_folder(path, replace=True, entries=entries, size=size))
            own_entries = sharded.save_tensors(Path(self._processes.broadcast(str(folder))), named)
            for rank_entries in self._processes.all_gather(own_entries):
                entries.update(rank_entries)
            with self._agree(), explain_full_disk(path, size):
                if self._processes.is_main:
                    (folder / STATE_FILE).write_text(state, encoding="utf-8")
                    stack.close()  # seals and renames

    def load(self, step: int) -> Checkpoint:
        """Load a checkpoint.

        Raises:
            DamagedError: If a file does not match the manifest.
        """
        state = self.load_state(step)
        return Checkpoint(**self._load_tensors(step, tuple(TENSOR_FILES)), state=state)

    def load_state(self, step: int) -> dict[str, Any]:
        """Load only the state of a checkpoint; verifies all files."""
        with self._agree():
            self._verify(step)
            return self._read_state(step)

    def _read_state(self, step: int) -> dict[str, Any]:
        path = self.path(step) / STATE_FILE
        try:
            state = read_json(path)
        except FileNotFoundError:  # another process has replaced the checkpoint since it was verified
            raise DamagedError("The file is missing.", location=str(path), hint="Read the checkpoint again.") from None
        if not isinstance(state, dict):
            raise DamagedError(
                "The file does not contain a run state.", location=str(path), hint="Restore it from a backup."
            )
        progress = state.get("progress")
        saved = progress.get("step", step) if isinstance(progress, dict) else step
        if type(saved) is int and saved != step:
            message, hint = (
                f"The folder contains the state of step {str(saved)[:20]}.",
                "Restore the folder's original name.",
            )
            raise DamagedError(message, location=str(path), hint=hint)
        return state

    def load_weights(self, step: int) -> dict[str, Tensor]:
        """Load only the weights of a checkpoint; verifies all files."""
        with self._agree():
            self._verify(step)
        return self._load_tensors(step, ("weights",))["weights"]

    def _verify(self, step: int) -> None:
        """Compare a checkpoint with its manifest; each rank reads its share of the files."""
        rank, ranks = self._processes.rank, self._processes.world_size
        folder = self.path(step)
        names = sorted(path.name for path in folder.glob("*")) if ranks > 1 else []
        size_only = {name for number, name in enumerate(names) if number % ranks != rank}
        verify(folder, max_bytes=self._max_bytes, size_only=size_only)

    def _load_tensors(self, step: int, groups: Sequence[str]) -> dict[str, dict[str, Tensor]]:
        """Load tensors of a verified checkpoint: the parts that this rank has of the parameters."""
        folder = self.path(step)
        is_whole = (folder / TENSOR_FILES["weights"]).exists()
        if is_whole and not self._processes.is_sharded:
            with self._agree():
                return {group: load_tensors(folder / TENSOR_FILES[group]) for group in groups}
        from regard.training.checkpoint import sharded  # only here: one process rarely imports torch.distributed

        read = partial(sharded.load_tensors, allocate=self._allocate, agree=self._agree)
        if is_whole:
            return {group: read([folder / TENSOR_FILES[group]]) for group in groups}
        shards = sorted(folder.glob("*.safetensors"))
        if not shards:
            message, hint = "The checkpoint holds no tensors.", "Restore an intact copy of the folder."
            raise DamagedError(message, location=str(folder), hint=hint)
        named = read(shards, is_wanted=lambda name: name.split("/")[0] in groups)
        prefixes = {group: f"{group}/" for group in groups}
        return {
            group: {name.removeprefix(prefix): tensor for name, tensor in named.items() if name.startswith(prefix)}
            for group, prefix in prefixes.items()
        }

    def _allocate(self, name: str, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        """Create the tensor to load: sharded like its parameter, whose name ends its own, or whole."""
        parameter = self._parameters.get(name.rsplit("/", 1)[-1])
        if self._processes.is_sharded and parameter is not None and parameter.shape == shape:
            return torch.zeros_like(parameter.detach(), dtype=dtype)
        return torch.zeros(shape, dtype=dtype)

    @contextmanager
    def _agree(self) -> Iterator[None]:
        """Make an error of one rank an error of all: the others would wait for it."""
        caught: Exception | None = None
        try:
            yield
        except Exception as error:  # every rank has to learn of it
            caught = error
        errors = [error for error in self._processes.all_gather(_describe(caught)) if error is not None]
        if caught is not None:
            raise caught
        if errors:
            raise _restore(errors[0])

    def load_newest(self, steps: Iterable[int] | None = None) -> tuple[int, Checkpoint] | None:
        """Load the newest intact checkpoint (of `steps`, or of all), warn of damaged ones; None without any."""
        return self._read_newest(self.load, self.steps() if steps is None else sorted(steps))

    def load_newest_state(self) -> dict[str, Any] | None:
        """Load only the state of the newest intact checkpoint; None without any."""
        newest = self._read_newest(self.load_state, self.steps())
        return None if newest is None else newest[1]

    def intact_steps(self, steps: Iterable[int]) -> list[int]:
        """Return the steps whose checkpoints are intact; warns about the others."""
        return [step for step in steps if self._read_if_intact(self.load_state, step) is not None]

    def set_aside_after(self, step: int) -> None:
        """Rename the later checkpoints, which are damaged, to step-N.damaged: rotation must not count them."""
        for later in self.steps():
            if later > step and self._processes.is_main:
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
                location=str(self.folder),
                hint="Restore one from a backup, or start a new run in another folder.",
            )
        return None

    def _read_if_intact(self, read: Callable[[int], Result], step: int) -> Result | None:
        try:
            return read(step)
        except DamagedError as error:
            self._faults[step] = error.message
            self._warn(f"Checkpoint {self.path(step).name} is damaged and was skipped. {error.message}")
            return None

    def remove(self, step: int) -> None:
        """Remove a checkpoint; renames it first, so a kill leaves no incomplete checkpoint under its name."""
        if not self._processes.is_main:
            return
        path = self.path(step)
        removed_path = path.with_name(f"{path.name}.gone")
        shutil.rmtree(removed_path, ignore_errors=True)
        path.rename(removed_path)
        shutil.rmtree(removed_path)

    def rotate(self, keep: set[int]) -> None:
        """Remove all checkpoints except `keep` and the newest."""
        for step in self.steps()[:-1]:
            if step not in keep:
                self.remove(step)


def _describe(error: Exception | None) -> dict[str, str | None] | None:
    """Serialize an error so that other ranks can raise it."""
    if error is None:
        return None
    if not isinstance(error, RegardError):
        return {"kind": "other", "what": f"Another rank failed: {type(error).__name__}: {error}"}
    kind = "damaged" if isinstance(error, DamagedError) else "refused"
    return {"kind": kind, "message": error.message, "location": error.location, "hint": error.hint}


def _restore(error: dict[str, Any]) -> Exception:
    """Rebuild an error from another rank; an unexpected error stays unexpected, so the run may be retried."""
    if error["kind"] == "other":
        return RuntimeError(error["what"])
    kind = DamagedError if error["kind"] == "damaged" else RegardError
    return kind(error["message"], location=error["location"], hint=error["hint"])
