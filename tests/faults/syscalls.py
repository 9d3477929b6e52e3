"""Inject faults at a chosen system call with strace: a signal at its entry, or an error instead of it.

A call is identified by its name and number: the 3rd `write`. Processes forked from one state make the same calls, so
one undisturbed process gives the list of calls.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

STRACE = shutil.which("strace")
FILES = "%file,%desc"  # all calls that take a path or an open file
MEMORY = frozenset({"mmap"})  # here it only allocates memory
PR_SET_PTRACER = 0x59616D61  # Linux: who may trace this process
_CALL = re.compile(r"(\w+)\((.*)")


@dataclass(frozen=True)
class Call:
    """One system call of a process."""

    name: str
    number: int  # among calls of this name, from 1
    rest: str  # arguments and result as strace prints them

    def __str__(self) -> str:
        return f"{self.name} {self.number}"

    def injection_options(self, fault: str, until: str = "") -> list[str]:
        """Return strace options: `signal=KILL` or `error=ENOSPC` at this call, or with "+" from it on."""
        return ["-e", f"trace={self.name}", "-e", f"inject={self.name}:{fault}:when={self.number}{until}"]


@dataclass(frozen=True)
class Traced:
    """How a traced process ended, and the calls it made."""

    code: int  # as in `subprocess`: below 0 it is a signal
    calls: list[Call]


def explain_unavailable() -> str | None:
    """Return why tracing is not possible here, or None if it is."""
    if STRACE is None:
        return "strace is not installed (apt-get install strace)"
    result = subprocess.run([STRACE, "-q", "-o", os.devnull, "true"], capture_output=True, check=False)  # noqa: S603
    return (
        None if result.returncode == 0 else "strace may not trace processes here (in a container: --cap-add=SYS_PTRACE)"
    )


def fork_traced(options: list[str]) -> Traced | None:
    """Fork under strace: return None in the child, and in the parent how the child ended."""
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1))  # strace is not an ancestor of this process
        os.kill(os.getpid(), signal.SIGSTOP)  # until strace is attached
        return None
    os.waitpid(child, os.WUNTRACED)
    with tempfile.NamedTemporaryFile("r") as log:
        tracer = subprocess.Popen(  # noqa: S603 - the program that STRACE found
            [str(STRACE), "-q", "-s", "256", "-p", str(child), "-o", log.name, *options]
        )
        while not is_traced(child):
            if tracer.poll() is not None:
                os.kill(child, signal.SIGKILL)
                raise OSError("strace may not trace here")
            time.sleep(0.0005)
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, 0)
        tracer.wait()
        return Traced(os.waitstatus_to_exitcode(status), parse_calls(log.read()))


def is_traced(process: int) -> bool:
    """Whether strace is attached to a process."""
    return "TracerPid:\t0\n" not in Path(f"/proc/{process}/status").read_text()


def parse_calls(log: str) -> list[Call]:
    """Return the calls of a log that strace wrote."""
    counts: Counter[str] = Counter()
    calls = []
    for line in log.split("\n"):
        if (call := _CALL.match(line)) and call[1] not in MEMORY:
            counts[call[1]] += 1
            calls.append(Call(call[1], counts[call[1]], call[2]))
    return calls
