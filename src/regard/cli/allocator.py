"""Starting the command again under a tuned allocator: glibc reads its settings only when a process starts.

Large tensors then come from the heap and stay there; else every step faults its pages in anew (a third of the time
where there are logits over a large vocabulary). The mathematics is untouched.
"""

import os
import sys
from pathlib import Path

from regard.base import cpu_fast_path

TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8000000000:glibc.malloc.hugetlb=1"
TUNABLES_VARIABLE, RESTART_VARIABLE = "GLIBC_TUNABLES", "REGARD_STARTED_AGAIN"


def tune_allocator() -> None:
    """Start this very command again, once, where that helps: on Linux with glibc, and not inside another program."""
    if os.environ.pop(RESTART_VARIABLE, None) is not None:  # this is the second start
        os.environ.pop(TUNABLES_VARIABLE, None)  # it has been read, and programs started from here need none of it
        return
    if (
        not cpu_fast_path.is_enabled()
        or TUNABLES_VARIABLE in os.environ
        or not _has_glibc()
        or not is_this_command(sys.orig_argv, sys.argv)
    ):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {**os.environ, TUNABLES_VARIABLE: TUNABLES, RESTART_VARIABLE: "1"}
    os.execve(sys.executable, sys.orig_argv, environment)  # noqa: S606 - the same program, no shell


def is_this_command(original: list[str], arguments: list[str]) -> bool:
    """Whether the process was started as `regard ...` or `python -m regard ...`, and not as a program that uses it.

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


def _has_glibc() -> bool:
    try:
        return sys.platform == "linux" and (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return False
