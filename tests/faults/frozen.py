"""A run frozen at an event. Child processes are forked at that point, continue it, and each get one fault.

The run is the smallest that uses everything: dropout, accumulation, schedule, moving average, rotation. The folder is
checked and restored after each child. Resuming happens in a copy, because the frozen run locks its own folder.
"""

import gc
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.config.run import RunConfig
from regard.store.run_folder import RunFolder
from regard.training.checkpoint.folder import Checkpoints
from regard.training.events import Event, Finished, Saved, StepFinished
from regard.training.run import fit, is_finished, resume
from tests.faults.syscalls import FILES, Call, Traced, fork_traced
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus

DONE, FAILED, CRASHED = 0, 1, 99  # exit codes of a child: past the window, RegardError, any other error
MESSAGE = 4096  # bytes
STRAYS = (".tmp", ".gone", ".old", ".damaged")
_RANDOM_NAME = re.compile(r"/\.tmp\w{6}$|(?<=json\.)\w{8}(?=\.tmp$)")
Fingerprints = dict[str, str]


@dataclass(frozen=True)
class Window:
    """The events between which faults are injected."""

    name: str
    step: int
    until: type[Event]


SAVE = Window("save and rotate", 8, Saved)  # one checkpoint is written, one removed
END = Window("the end of a run", 12, Finished)  # best model, checkpoint, average, and the last checkpoint replaced


class _ExperimentOver(BaseException):
    """The experiment is over."""


class Frozen:
    """A run paused in this process, just before a window."""

    def __init__(self, folder: Path, expected: Fingerprints, message: mmap) -> None:
        self.folder, self.expected, self._shared_message = folder, expected, message
        self._before, self._copy = folder.with_name("before"), folder.with_name("again")
        self._verdicts: dict[str, list[str]] = {}
        shutil.copytree(folder, self._before)

    def strike(self, options: list[str]) -> tuple[Traced, str] | None:
        """Continue the run in a child under strace; return its end and its error, or None in the child itself."""
        self._undo()
        gc.collect()  # else a child may close the files of runs that this process has resumed, and counts differ
        traced = fork_traced(options)
        return None if traced is None else (traced, read_message(self._shared_message))

    def calls(self) -> list[Call] | None:
        """Return the file system calls of an undisturbed child, or None in the child itself."""
        result = self.strike(["-e", f"trace={FILES}"])
        if result is not None and result[0].code != DONE:
            raise AssertionError(f"The undisturbed child ended with {result[0].code}: {result[1]}")
        return None if result is None else result[0].calls

    def discard(self) -> None:
        """Restore the folder, so that the run can continue."""
        self._undo()
        shutil.rmtree(self._before)

    def _undo(self) -> None:
        write_message(self._shared_message, "")
        for path in self.folder.iterdir():  # not the folder itself: the run has locked it
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self._before, self.folder, dirs_exist_ok=True)

    def find_violations(self) -> list[str]:
        """List the guarantees that the folder violates. Equal folders are checked once."""
        state = hash_folder(self.folder)
        if state not in self._verdicts:
            self._verdicts[state] = list(self._check_folder())
        return self._verdicts[state]

    @property
    def states(self) -> int:
        """Number of distinct folders that children left."""
        return len(self._verdicts)

    def _check_folder(self) -> Iterator[str]:
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self.folder, self._copy)
        try:
            if Checkpoints(RunFolder(self._copy).checkpoints, lambda _: None).load_newest() is None:
                yield "no checkpoint is left"
            if not is_finished(self._copy):
                resume(self._copy)
        except RegardError as error:
            yield f"it cannot be resumed: {error.message}"
            return
        now = compute_fingerprints(self._copy)
        yield from (
            f"{name} differs"
            for name in sorted(self.expected.keys() | now.keys())
            if self.expected.get(name) != now.get(name)
        )
        yield from (f"{path.name} is left over" for path in self._copy.rglob("*") if path.suffix in STRAYS)


def hash_folder(folder: Path) -> str:
    """Hash the names and contents of a folder; random parts of names are ignored."""
    facts = [
        (_RANDOM_NAME.sub("", str(path.relative_to(folder))), path.read_bytes() if path.is_file() else b"folder")
        for path in folder.rglob("*")
    ]
    return hashlib.sha256(repr(sorted(facts)).encode()).hexdigest()


@contextmanager
def make_scratch_folder() -> Iterator[Path]:
    """Make a temporary folder, in memory where possible: the outcome of a kill is the same, and thousands are fast."""
    memory = Path("/dev/shm")  # noqa: S108 - a unique folder is created in it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def make_smallest_run(folder: Path, **changes: Any) -> RunConfig:
    """Make a shorter `make_small_run`: twelve steps, a checkpoint every two, no generated samples."""
    short = {
        "train.steps": 12, "train.save_every": 2, "train.average": 2, "validation.every_steps": 6,
        "validation.sentences": 0, "validation.samples": 0,
    }  # fmt: skip
    return make_small_run("translation", write_corpus(folder / "corpus"), short | changes)


def freeze_run(folder: Path, windows: Sequence[Window], experiment: Callable[[Frozen, Window], None]) -> None:
    """Run until each window starts, run the experiment there, and discard the run after the last one."""
    run = make_smallest_run(folder)
    fit(run, folder / "undisturbed")
    expected = compute_fingerprints(folder / "undisturbed")
    zygote, run_folder, message = os.getpid(), folder / "run", mmap(-1, MESSAGE)
    remaining = list(windows)

    def on_event(event: Event) -> None:
        if os.getpid() != zygote:
            if isinstance(event, remaining[0].until):
                os._exit(DONE)
        elif isinstance(event, StepFinished) and event.step == remaining[0].step:
            frozen = Frozen(run_folder, expected, message)
            experiment(frozen, remaining[0])
            if os.getpid() == zygote:
                frozen.discard()
                del remaining[0]
                if not remaining:
                    raise _ExperimentOver

    try:
        fit(run, run_folder, listeners=[on_event])
    except _ExperimentOver:
        return
    except BaseException as error:
        if os.getpid() == zygote:
            raise
        write_message(message, str(error))
        os._exit(FAILED if isinstance(error, RegardError) else CRASHED)


def write_message(message: mmap, text: str) -> None:
    """Write a text to memory shared by parent and child: a child with a full disk cannot write a file."""
    message.seek(0)
    message.write(text.encode()[:MESSAGE].ljust(MESSAGE, b"\0"))


def read_message(message: mmap) -> str:
    """Read the shared text."""
    return bytes(message).rstrip(b"\0").decode(errors="replace")
