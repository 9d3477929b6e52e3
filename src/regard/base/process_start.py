"""Set the OpenMP wait policy and the thread count before torch is imported, and record the start time.

libgomp reads its variables when torch loads it, so they cannot be changed later. By default its threads spin while
waiting. On a busy machine, two spinning threads take 6 to 21 times as long as two sleeping ones (docs/why/cpu.md).
Child processes inherit the variable.
"""

import os
import time
from collections.abc import MutableMapping

WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # any of them overrides the default policy


def set_wait_policy(environment: MutableMapping[str, str]) -> None:
    """Make OpenMP threads sleep while waiting, unless the environment already sets a wait policy.

    >>> environment = {}
    >>> set_wait_policy(environment)
    >>> environment
    {'OMP_WAIT_POLICY': 'passive'}
    """
    if not any(name in environment for name in WAIT_VARIABLES):
        environment["OMP_WAIT_POLICY"] = "passive"


def limit_tokenizer_threads(environment: MutableMapping[str, str]) -> None:
    """Limit `tokenizers` to OMP_NUM_THREADS threads: more threads take up to a third more CPU time.

    >>> environment = {"OMP_NUM_THREADS": "1"}
    >>> limit_tokenizer_threads(environment)
    >>> environment["RAYON_NUM_THREADS"]
    '1'
    """
    if (threads := environment.get("OMP_NUM_THREADS", "")).isdecimal():
        environment.setdefault("RAYON_NUM_THREADS", threads)


set_wait_policy(os.environ)
limit_tokenizer_threads(os.environ)
# On the clock of `time.perf_counter`; the time before this import is estimated by the process's CPU time.
STARTED = time.perf_counter() - time.process_time()
