"""One of the ranks of a run: what its launcher tells it in the environment, and what it tells its launcher.

The launcher (`regard.training.distributed.launcher`, or torchrun) starts `regard train` once for each rank. A rank
knows from RANK and WORLD_SIZE that it is one of several. With our launcher it also has a folder: it reports its exit
code and its error there, because the agent takes every code but 0 for a failure and restarts all ranks.
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
from typing import Any, Self

from regard.base.errors import RegardError, RetryError
from regard.base.files import write_atomic

FOLDER_VARIABLE, ATTEMPT_VARIABLE, LAUNCHER_VARIABLE = "REGARD_LAUNCH", "REGARD_ATTEMPT", "REGARD_LAUNCHER"
STOP_MARK = "stop"  # a file in the launch folder: a stop was requested
RELAYED_SIGTERM = signal.SIGUSR1  # our launcher passes a SIGTERM on as this: a SIGTERM itself ends a rank at once
WATCH_INTERVAL = 1.0  # seconds between looks at the parent process


@dataclass(frozen=True)
class Worker:
    """The place of this process among the ranks of a run."""

    rank: int
    world_size: int
    attempt: int = 0  # starts of all ranks before this one
    folder: Path | None = None  # of our launcher; None under torchrun

    @classmethod
    def from_environment(cls) -> Self | None:
        """Return the place of this process; None if it is not one of several ranks.

        A container may set RANK and WORLD_SIZE for a single process: without our launcher that is an ordinary command.
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
        """Run the work of this rank and report its end to our launcher.

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
        except RegardError as error:  # the next attempt would meet it again, unless the error says otherwise
            is_final = not isinstance(error, RetryError)
            end = {"code": 1, "error": str(error), "traceback": "", "is_final": is_final, "time": time.time()}
            self._report("end", end)
            return 1
        except Exception as error:  # of another rank in most cases; the launcher finds out whose
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
        """End this rank when its launcher has been killed: nobody would stop it or read its result."""

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(WATCH_INTERVAL)
            os.killpg(0, signal.SIGKILL)  # with the processes that it started

        threading.Thread(target=watch, name="watch the launcher", daemon=True).start()


def report_path(folder: Path, attempt: int, rank: int, kind: str) -> Path:
    """Return the path of a report of a rank: its process id ("pid"), or how it ended ("end")."""
    return folder / f"attempt-{attempt}" / f"rank-{rank}.{kind}"


def is_launched() -> bool:
    """Whether our launcher started this process as one of the ranks of a run."""
    return FOLDER_VARIABLE in os.environ and "RANK" in os.environ
