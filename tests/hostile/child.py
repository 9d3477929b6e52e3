"""Open something in a forked child and tell how that ended: with what words, how fast, with how much memory.

The child is a copy of a process that has imported everything, so what is measured is the opening alone.
"""

import faulthandler
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

MAX_SECONDS = 1.0  # of CPU
MAX_MEMORY = 200 << 20  # bytes beyond what the imports take
MAX_MESSAGE_LENGTH = 3000  # characters of a message that a person still reads
TIMEOUT = 30.0  # seconds of wall time: on a busy machine a second of CPU takes longer
SPARE_MEMORY = 2 << 30  # bytes of address space that a child may ask for: the machine survives a failed test


@dataclass(frozen=True)
class Outcome:
    """How an opening ended: "opened", "refused" (a RegardError), "raised" (anything else), "died" or "hung"."""

    ended: str
    kind: str = ""  # the class of the error, or the signal
    message: str = ""
    where: str | None = None
    has_fix: bool = False
    printed: str = ""  # on standard output and standard error
    seconds: float = 0.0  # of CPU
    memory: int = 0  # bytes at the peak, beyond those at the start

    def violations(self) -> list[str]:
        """What is wrong with it as an answer to an attack."""
        if self.ended != "refused":
            return [f"{self.ended}: {self.kind} {self.message or self.printed}".rstrip()]
        violations = []
        if self.seconds > MAX_SECONDS:
            violations.append(f"took {self.seconds:.2f} s of CPU")
        if self.memory > MAX_MEMORY:
            violations.append(f"took {self.memory >> 20} MB")
        if self.printed:
            violations.append(f"printed {self.printed[:200]!r}")
        if not self.where:
            violations.append(f"does not say where: {self.message[:200]!r}")
        if not self.has_fix:
            violations.append(f"does not say what to do: {self.message[:200]!r}")
        if len(self.message) > MAX_MESSAGE_LENGTH or not self.message.replace("\n", "").isprintable():
            violations.append(f"is no message for people: {self.message[:200]!r}")
        return violations


def open_in_child(door: Callable[[], object]) -> Outcome:
    """Call `door` in a child."""
    with tempfile.TemporaryFile() as report, tempfile.TemporaryFile() as printed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of threads; the child starts none
            child = os.fork()
        if child == 0:
            _open(door, report, printed)
        status, usage, hung = _wait(child)
        report.seek(0)
        printed.seek(0)
        output = printed.read(1 << 16).decode(errors="backslashreplace").strip()
        seconds = usage.ru_utime + usage.ru_stime
        code = os.waitstatus_to_exitcode(status)
        if hung or code:
            kind = "no answer" if hung else signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return Outcome("hung" if hung else "died", kind, printed=output, seconds=seconds)
        return Outcome(**json.loads(report.read()), printed=output, seconds=seconds)


def _open(door: Callable[[], object], report: IO[bytes], printed: IO[bytes]) -> None:
    """The child's life; it never returns."""
    try:
        faulthandler.disable()  # pytest's own, which writes past what is caught here
        for number in (1, 2):
            os.dup2(printed.fileno(), number)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        torch.set_num_threads(1)
        _limit_resources()
        before = _peak_memory()
        result = _call_door(door)
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
        has_fix = error.fix is not None or isinstance(error, ConfigError)  # the faults of a configuration say it
        return {
            "ended": "refused",
            "kind": type(error).__name__,
            "message": str(error),
            "where": error.where,
            "has_fix": has_fix,
        }
    except BaseException as error:
        return {"ended": "raised", "kind": type(error).__name__, "message": str(error)[:500]}
    return {"ended": "opened"}


def _limit_resources() -> None:
    """What the child may take at most, so that a failed test is a failed test and no dead machine."""
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + SPARE_MEMORY,) * 2)


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _wait(child: int) -> tuple[int, resource.struct_rusage, bool]:
    """Wait for the child, but not for ever."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return status, usage, False
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return status, usage, True
