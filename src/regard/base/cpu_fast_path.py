"""Switch for the CPU fast path: faster implementations of the plain reference code (docs/why/cpu.md).

The fast path is on by default. REGARD_CPU_FAST_PATH=0 turns it off for a process, and `device.cpu_fast_path = false` in
a run's settings turns it off for that run.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "REGARD_CPU_FAST_PATH"

_enabled = os.environ.get(VARIABLE, "1") != "0"


def is_enabled() -> bool:
    """Whether fast implementations may be used."""
    return _enabled


@contextmanager
def enabled(condition: bool) -> Iterator[None]:
    """Disable the fast path for the whole process inside this block, unless `condition` is True."""
    global _enabled
    before, _enabled = _enabled, _enabled and condition
    try:
        yield
    finally:
        _enabled = before
