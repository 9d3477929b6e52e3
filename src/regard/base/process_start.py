"""What `import regard` does before torch is imported: set how OpenMP threads wait, and note when the process started.

libgomp reads its variables when torch loads it, so nothing can be changed later. Its threads spin while they wait for
each other: next to other processes, every wait lasts until the operating system gives the core back, and two threads
take 6 to 21 times as long as threads that sleep (docs/cpu.md). Other processes, ranks and workers inherit the variable.
"""

import os
import time
from collections.abc import MutableMapping

WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # any of them is the user's own choice
RESTART_VARIABLE = "REGARD_STARTED_AGAIN"  # set while a command restarts: when it was started first


def set_wait_policy(environment: MutableMapping[str, str]) -> None:
    """Let OpenMP threads sleep while they wait, unless the environment already says how they wait.

    >>> environment = {}
    >>> set_wait_policy(environment)
    >>> environment
    {'OMP_WAIT_POLICY': 'passive'}
    """
    if not any(name in environment for name in WAIT_VARIABLES):
        environment["OMP_WAIT_POLICY"] = "passive"


def find_start(restarted: str | None) -> float:
    """Return when this process, or the one that it replaced, was started, on the clock of `time.perf_counter`.

    The seconds before this call are estimated by their CPU time: the interpreter has done little else.
    """
    now = time.perf_counter()
    try:
        started = float(restarted or "nan")
    except ValueError:
        started = now
    return started if 0 < started <= now else now - time.process_time()


set_wait_policy(os.environ)
STARTED = find_start(os.environ.get(RESTART_VARIABLE))
