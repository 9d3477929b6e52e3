"""The switch of the CPU fast path: faster implementations beside the plain reference code (docs/cpu.md).

The fast path is on by default. REGARD_CPU_FAST_PATH=0 turns it off for a whole process, and
`device.cpu_fast_path = false` in the settings of a run turns it off for that run.
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
    """Switch the fast path off inside a block, in the whole process, unless the condition holds."""
    global _enabled
    before, _enabled = _enabled, _enabled and condition
    try:
        yield
    finally:
        _enabled = before
