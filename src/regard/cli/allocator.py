"""CPU fast path; reference: `device.allocator = "plain"`; proven by: tests/cli/test_train.py.

Re-executes `regard train` with glibc malloc tunables, because glibc reads them only when a process starts. Large
tensors then stay in the heap; otherwise the kernel maps and clears their pages anew in every update (a third of the
time where there are logits over a large vocabulary). Freed memory is kept, so a process needs up to 1.7 times as much.
The results are bit-identical.
"""

import os
import sys
import time
from pathlib import Path

from regard.base import cpu_fast_path
from regard.base.process_start import RESTART_VARIABLE, STARTED

TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8000000000:glibc.malloc.hugetlb=1"
TUNABLES_VARIABLE = "GLIBC_TUNABLES"
MIN_MEMORY = 4e9  # bytes that must be available; with less, the higher memory use is not worth the speed
NOTE = (
    "Memory: freed tensors are kept for the next update, which saves time and takes up to 1.7 times the memory; "
    "--set device.allocator=plain turns it off."
)


def tune_allocator(*, is_enabled: bool) -> tuple[str, ...]:
    """Restart this command once with the malloc tunables, where that is possible and memory is ample.

    Args:
        is_enabled: Whether the settings allow it (`device.allocator`, `device.cpu_fast_path`).

    Returns:
        Lines for the log: a note about the tunables and how to turn them off; empty if they are not in effect.
    """
    if os.environ.pop(RESTART_VARIABLE, None) is not None:  # this is the restarted process
        os.environ.pop(TUNABLES_VARIABLE, None)  # glibc has read it, and child processes do not need it
        return (NOTE,)
    if (
        not is_enabled
        or not cpu_fast_path.is_enabled()
        or TUNABLES_VARIABLE in os.environ
        or not _has_glibc()
        or not is_this_command(sys.orig_argv, sys.argv)
        or available_memory() < MIN_MEMORY
    ):
        return ()
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {**os.environ, TUNABLES_VARIABLE: TUNABLES, RESTART_VARIABLE: repr(STARTED)}
    return os.execve(sys.executable, sys.orig_argv, environment)  # noqa: S606 - the same program, no shell


def is_this_command(original: list[str], arguments: list[str]) -> bool:
    """Return whether the process was started as `regard ...` or `python -m regard ...`, not as a program that uses it.

    >>> is_this_command(["python", "/bin/regard", "train"], ["/bin/regard", "train"])
    True
    >>> is_this_command(["python", "-m", "pytest", "tests"], ["regard", "train"])
    False
    """
    user_arguments = arguments[1:]
    program = original[: len(original) - len(user_arguments)]
    if not user_arguments or original[len(program) :] != user_arguments:
        return False
    return program[-2:] == ["-m", "regard"] or (len(program) > 1 and Path(program[-1]).name == "regard")


def command_start() -> float:
    """Return when the command began (`time.perf_counter()`): with its process, or now if a program calls it."""
    return STARTED if is_this_command(sys.orig_argv, sys.argv) else time.perf_counter()


def available_memory() -> float:
    """Return the bytes that a new process can use without swapping, 0 if the system does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0.0)


def _has_glibc() -> bool:
    try:
        return sys.platform == "linux" and (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return False
