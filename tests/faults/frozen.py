"""A real run, frozen at an event. Children are forked from that instant, go on with it, and meet a fault each.

The run is the smallest that has everything: dropout, accumulation, schedule, moving average, rotation. What a
child did to the folder is looked at and undone before the next one. Resuming happens in a copy: the frozen run holds
its own folder.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.config.run import Run
from regard.store.run_folder import RunFolder
from regard.train.checkpoint import Checkpoints
from regard.train.events import Event, Finished, Saved, Updated
from regard.train.fit import fit, is_finished, resume
from tests.faults.syscalls import FILES, Call, Traced, fork_traced
from tests.train.runs import compute_fingerprints, make_small_run, write_corpus

DONE, FAILED, CRASHED = 0, 1, 99  # how a child ends: past the window, by an error that teaches, by any other
MESSAGE = 4096  # bytes
STRAYS = (".tmp", ".gone", ".old", ".damaged")
_RANDOM_NAME = re.compile(r"/\.tmp\w{6}$|(?<=json\.)\w{8}(?=\.tmp$)")
Fingerprints = dict[str, str]


@dataclass(frozen=True)
class Window:
    """From which event to which other one faults are injected."""

    name: str
    update: int
    until: type[Event]


SAVE = Window("save and rotate", 8, Saved)  # one checkpoint is written, one goes
END = Window("the end of a run", 12, Finished)  # best model, checkpoint, average, and the last checkpoint replaced


class _ExperimentOver(BaseException):
    """The experiment is over."""


class Frozen:
    """A run that stands still in this process, just before a window."""

    def __init__(self, folder: Path, expected: Fingerprints, message: mmap) -> None:
        self.folder, self.expected, self._shared_message = folder, expected, message
        self._before, self._copy = folder.with_name("before"), folder.with_name("again")
        self._verdicts: dict[str, list[str]] = {}
        shutil.copytree(folder, self._before)

    def strike(self, options: list[str]) -> tuple[Traced, str] | None:
        """Let a child go on under strace: how it ended and the error it told; None is the child itself."""
        self._undo()
        traced = fork_traced(options)
        return None if traced is None else (traced, read_message(self._shared_message))

    def calls(self) -> list[Call] | None:
        """The file system calls of an undisturbed child; None is the child itself."""
        result = self.strike(["-e", f"trace={FILES}"])
        if result is not None and result[0].code != DONE:
            raise AssertionError(f"The undisturbed child ended with {result[0].code}: {result[1]}")
        return None if result is None else result[0].calls

    def _undo(self) -> None:
        write_message(self._shared_message, "")
        for path in self.folder.iterdir():  # not the folder itself: the run holds it
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self._before, self.folder, dirs_exist_ok=True)

    def find_violations(self) -> list[str]:
        """Which promises the folder breaks as the child left it. Equal folders are judged once."""
        state = hash_folder(self.folder)
        if state not in self._verdicts:
            self._verdicts[state] = list(self._check_folder())
        return self._verdicts[state]

    @property
    def states(self) -> int:
        """Different folders that children left."""
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
            yield f"it cannot be resumed: {error.what}"
            return
        now = compute_fingerprints(self._copy)
        yield from (
            f"{name} differs"
            for name in sorted(self.expected.keys() | now.keys())
            if self.expected.get(name) != now.get(name)
        )
        yield from (f"{path.name} is left over" for path in self._copy.rglob("*") if path.suffix in STRAYS)


def hash_folder(folder: Path) -> str:
    """The names and contents of everything in a folder, as one number; names made by chance count as one."""
    facts = [
        (_RANDOM_NAME.sub("", str(path.relative_to(folder))), path.read_bytes() if path.is_file() else b"folder")
        for path in folder.rglob("*")
    ]
    return hashlib.sha256(repr(sorted(facts)).encode()).hexdigest()


@contextmanager
def make_scratch_folder() -> Iterator[Path]:
    """A folder for a proof, in memory where that can be: a kill knows no difference, and thousands are quick."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder with a name of its own is made in it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def make_smallest_run(folder: Path, **changes: Any) -> Run:
    """`small_run`, shortened: twelve updates, a checkpoint every two, no sentences written."""
    short = {
        "train.updates": 12, "train.save_every": 2, "train.average": 2, "validation.every": 6,
        "validation.sentences": 0, "validation.samples": 0, "device.allocator": "plain",
    }  # fmt: skip
    return make_small_run("translate", write_corpus(folder / "corpus"), short | changes)


def freeze_run(folder: Path, window: Window, experiment: Callable[[Frozen], None]) -> None:
    """Run until the window opens, experiment there, and throw the run away."""
    run = make_smallest_run(folder)
    fit(run, folder / "undisturbed")
    expected = compute_fingerprints(folder / "undisturbed")
    zygote, run_folder, message = os.getpid(), folder / "run", mmap(-1, MESSAGE)

    def on_event(event: Event) -> None:
        if os.getpid() != zygote:
            if isinstance(event, window.until):
                os._exit(DONE)
        elif isinstance(event, Updated) and event.update == window.update:
            experiment(Frozen(run_folder, expected, message))
            if os.getpid() == zygote:
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
    """Leave a text in memory that parent and child share: a child whose disk is full can write no file."""
    message.seek(0)
    message.write(text.encode()[:MESSAGE].ljust(MESSAGE, b"\0"))


def read_message(message: mmap) -> str:
    """What was left there."""
    return bytes(message).rstrip(b"\0").decode(errors="replace")
