"""What `import regard` does before torch is imported: set how OpenMP threads wait, and note when the process started.

libgomp reads its variables when torch loads it, so nothing can be changed later. Its threads spin while they wait for
each other: next to other processes, every wait lasts until the operating system gives the core back, and two threads
take 6 to 21 times as long as threads that sleep (docs/cpu.md). Other processes, ranks and workers inherit the variable.
"""

import os
import time
from collections.abc import MutableMapping

WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # any of them is the user's own choice


def set_wait_policy(environment: MutableMapping[str, str]) -> None:
    """Let OpenMP threads sleep while they wait, unless the environment already says how they wait.

    >>> environment = {}
    >>> set_wait_policy(environment)
    >>> environment
    {'OMP_WAIT_POLICY': 'passive'}
    """
    if not any(name in environment for name in WAIT_VARIABLES):
        environment["OMP_WAIT_POLICY"] = "passive"


set_wait_policy(os.environ)
# On the clock of `time.perf_counter`; the seconds before are estimated by their CPU time: little else happened in them.
STARTED = time.perf_counter() - time.process_time()
