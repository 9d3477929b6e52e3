"""One rank of a run: reads the launcher's environment variables and reports back to the launcher.

The launcher (`regard.training.distributed.launcher`, or torchrun) starts `regard train` once per rank and sets RANK and
WORLD_SIZE. With our launcher, a rank also reports its exit code and error in a folder, because the agent treats every
code except 0 as a failure and restarts all ranks.
"""

import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from regard.base.errors import RegardError, RetryError
from regard.base.files import write_atomic

if TYPE_CHECKING:
    from regard.training.distributed.processes import SingleProcess

FOLDER_VARIABLE, ATTEMPT_VARIABLE, LAUNCHER_VARIABLE = "REGARD_LAUNCH", "REGARD_ATTEMPT", "REGARD_LAUNCHER"
STOP_MARK = "stop"  # a file in the launch folder: a stop was requested
# Our launcher relays SIGTERM as this signal, because SIGTERM itself ends a rank at once. Windows has no such signal.
RELAYED_SIGTERM: int = getattr(signal, "SIGUSR1", signal.SIGTERM)
WATCH_INTERVAL = 1.0  # seconds between checks of the parent process


@dataclass(frozen=True)
class Worker:
    """This process as one rank of a run."""

    rank: int
    world_size: int
    attempt: int = 0  # number of earlier attempts
    folder: Path | None = None  # of our launcher; None under torchrun

    @classmethod
    def from_environment(cls) -> Self | None:
        """Read the environment; return None if this process is not one of several ranks.

        A container may set RANK and WORLD_SIZE for a single process; without our launcher this is an ordinary command.
        """
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return None
        if os.environ["WORLD_SIZE"] == "1" and FOLDER_VARIABLE not in os.environ:
            return None
        attempt = os.environ.get(ATTEMPT_VARIABLE) or os.environ.get("TORCHELASTIC_RESTART_COUNT") or "0"
        folder = os.environ.get(FOLDER_VARIABLE)
        return cls(
            rank=int(os.environ["RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]),
            attempt=int(attempt),
            folder=None if folder is None else Path(folder),
        )

    def run(self, function: Callable[[], int]) -> int:
        """Run this rank's function and report the result to our launcher.

        Args:
            function: Returns the exit code of `regard train`.

        Returns:
            The exit code of this process: 0 if our launcher reads the code from the report.
        """
        if self.folder is None:
            return function()
        self._report("pid", os.getpid())
        self._watch_parent(int(os.environ[LAUNCHER_VARIABLE]))  # it may have been killed before this line
        if (self.folder / STOP_MARK).exists():  # requested before the launcher knew this process
            return 1
        try:
            code = function()
        except RegardError as error:  # a retry would fail in the same way, unless it is a RetryError
            is_final = not isinstance(error, RetryError)
            end = {"code": 1, "error": str(error), "traceback": "", "is_final": is_final, "time": time.time()}
            self._report("end", end)
            return 1
        except Exception as error:  # usually caused by another rank; the launcher finds the cause
            summary = f"{type(error).__name__}: {error}"
            details = traceback.format_exc()
            self._report("end", {"code": 1, "error": summary, "traceback": details, "time": time.time()})
            return 1
        self._report("end", {"code": code})
        return 0

    def _report(self, kind: str, content: Any) -> None:
        assert self.folder is not None  # noqa: S101 - `run` checked
        path = report_path(self.folder, self.attempt, self.rank, kind)
        write_atomic(path, json.dumps(content).encode() + b"\n")

    @staticmethod
    def _watch_parent(parent: int) -> None:
        """Exit when the launcher has been killed."""

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(WATCH_INTERVAL)
            os.killpg(0, signal.SIGKILL)  # with the processes that it started

        threading.Thread(target=watch, name="watch the launcher", daemon=True).start()


def report_path(folder: Path, attempt: int, rank: int, kind: str) -> Path:
    """Return the path of a rank's report: its process id ("pid") or its result ("end")."""
    return folder / f"attempt-{attempt}" / f"rank-{rank}.{kind}"


def check_launcher() -> None:
    """Check that this operating system can run our launcher.

    Raises:
        RegardError: It cannot; this is the case on Windows.
    """
    if not hasattr(os, "killpg"):
        message = "Windows does not support --ranks and --hosts: they need POSIX signals and process groups."
        raise RegardError(message, hint="Train in one process, or use Linux, macOS or the Windows Subsystem for Linux.")


def is_launched() -> bool:
    """Whether our launcher started this process as a rank of a run."""
    return FOLDER_VARIABLE in os.environ and "RANK" in os.environ


def connect_processes() -> "SingleProcess":
    """Return the process group described by the launcher's environment variables, or a single process."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from regard.training.distributed.context import connect  # imports torch.distributed: only for several processes

        return connect()
    from regard.training.distributed.processes import SingleProcess  # imports torch: only when needed

    return SingleProcess()
