"""Open a path in a forked child process and report the outcome, message, CPU time and memory.

The child is forked from a process that has imported everything, so only the opening is measured.
"""

import faulthandler
import gc
import json
import os
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch

from regard.base.errors import ConfigError, RegardError

MAX_SECONDS = 1.0  # CPU time
MAX_MEMORY = 200 << 20  # bytes beyond the imports
MAX_MESSAGE_LENGTH = 3000  # characters of a readable message
TIMEOUT = 30.0  # seconds of wall time; a busy machine needs more than CPU time
SPARE_MEMORY = 2 << 30  # bytes of address space for a child, so that a failed test does not exhaust the machine


@dataclass(frozen=True)
class Outcome:
    """How an opening ended: "opened", "refused" (a RegardError), "raised" (anything else), "died" or "hung"."""

    ended: str
    kind: str = ""  # the class of the error, or the signal
    message: str = ""
    location: str | None = None
    has_fix: bool = False
    printed: str = ""  # on standard output and standard error
    seconds: float = 0.0  # of CPU
    memory: int = 0  # bytes at the peak, beyond those at the start

    def violations(self) -> list[str]:
        """List how the outcome differs from a proper refusal."""
        if self.ended != "refused":
            return [f"{self.ended}: {self.kind} {self.message or self.printed}".rstrip()]
        violations = []
        if self.seconds > MAX_SECONDS:
            violations.append(f"took {self.seconds:.2f} s of CPU")
        if self.memory > MAX_MEMORY:
            violations.append(f"took {self.memory >> 20} MB")
        if self.printed:
            violations.append(f"printed {self.printed[:200]!r}")
        if not self.location:
            violations.append(f"has no location: {self.message[:200]!r}")
        if not self.has_fix:
            violations.append(f"has no fix: {self.message[:200]!r}")
        if len(self.message) > MAX_MESSAGE_LENGTH or not self.message.replace("\n", "").isprintable():
            violations.append(f"has an unreadable message: {self.message[:200]!r}")
        return violations


def open_in_child(door: Callable[[], object]) -> Outcome:
    """Call `door` in a child process."""
    with tempfile.TemporaryFile() as report, tempfile.TemporaryFile() as printed:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # newer Pythons warn about threads; the child starts none
            child = os.fork()
        if child == 0:
            _open(door, report, printed)
        status, usage, hung = _wait(child)
        report.seek(0)
        printed.seek(0)
        output = printed.read(1 << 16).decode(errors="backslashreplace").strip()
        code = os.waitstatus_to_exitcode(status)
        if hung or code:
            seconds = usage.ru_utime + usage.ru_stime
            kind = "no answer" if hung else signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return Outcome("hung" if hung else "died", kind, printed=output, seconds=seconds)
        return Outcome(**json.loads(report.read()), printed=output)


def _open(door: Callable[[], object], report: IO[bytes], printed: IO[bytes]) -> None:
    """Run in the child; never returns."""
    try:
        gc.freeze()  # a full collection would visit, and so copy, every object of the tests that ran before
        faulthandler.disable()  # pytest's own handler bypasses the redirection
        for number in (1, 2):
            os.dup2(printed.fileno(), number)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        torch.set_num_threads(1)
        _limit_resources()
        before, start = _peak_memory(), time.process_time()
        result = _call_door(door)
        result["seconds"] = time.process_time() - start  # without the start and the end of a copy of a large process
        result["memory"] = _peak_memory() - before
        report.write(json.dumps(result).encode())
        report.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(99)


def _call_door(door: Callable[[], object]) -> dict[str, Any]:
    try:
        door()
    except RegardError as error:
        has_fix = error.hint is not None or isinstance(error, ConfigError)  # its faults contain fixes
        return {
            "ended": "refused",
            "kind": type(error).__name__,
            "message": str(error),
            "location": error.location,
            "has_fix": has_fix,
        }
    except BaseException as error:
        return {"ended": "raised", "kind": type(error).__name__, "message": str(error)[:500]}
    return {"ended": "opened"}


def _limit_resources() -> None:
    """Limit the child, so that a failed test does not exhaust the machine."""
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + SPARE_MEMORY,) * 2)


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _wait(child: int) -> tuple[int, resource.struct_rusage, bool]:
    """Wait for the child until the timeout, then kill it."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return status, usage, False
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return status, usage, True
