"""The start time of a command: `--minutes` counts from it."""

import sys
import time
from pathlib import Path

from regard.base.process_start import STARTED


def is_this_command(original: list[str], arguments: list[str]) -> bool:
    """Return whether the process was started as `regard ...` or `python -m regard ...`, not by another program.

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
    """Return the command's start time (`time.perf_counter()`): the process start, or now in another program."""
    return STARTED if is_this_command(sys.orig_argv, sys.argv) else time.perf_counter()
