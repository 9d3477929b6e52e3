"""The current phase of a training process, read by its parent from a byte of shared memory.

The child marks its phases itself, so after a SIGKILL the byte still holds the phase of its death.
"""

import os
import time
from collections.abc import Callable
from functools import wraps
from mmap import mmap
from typing import Any

from regard.training.checkpoint.folder import Checkpoints
from regard.training.publish import ModelWriter
from regard.training.step import StepRunner
from regard.training.validate import Validator

MARKED: dict[str, tuple[type, str]] = {
    "load": (Checkpoints, "load_newest"),
    "gradients": (StepRunner, "compute_gradients"),
    "step": (StepRunner, "step"),
    "validate": (Validator, "__call__"),
    "publish": (ModelWriter, "write"),
    "save": (Checkpoints, "save"),
    "rotate": (Checkpoints, "rotate"),
}
PHASES = ("between", *MARKED)  # "between" is everything else: preparing, the journal, the loop itself


class Phases:
    """Shared memory: the current phase, and how often each has started."""

    def __init__(self) -> None:
        self._shared = mmap(-1, 1 + len(PHASES))

    @property
    def now(self) -> str:
        """The current or last phase of the child."""
        return PHASES[self._shared[0]]

    def count_starts(self, phase: str) -> int:
        """Return how often a phase has started (up to 255)."""
        return self._shared[1 + PHASES.index(phase)]

    def wipe(self) -> None:
        """Reset before another child."""
        self._shared[:] = bytes(len(self._shared))

    def mark(self) -> None:
        """Mark every phase from now on; called in the child."""
        for number, (kind, method) in enumerate(MARKED.values(), 1):
            setattr(kind, method, self._wrap(number, getattr(kind, method)))

    def _wrap(self, number: int, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def marking(*arguments: Any, **options: Any) -> Any:
            before = self._shared[0]
            self._shared[0] = number
            self._shared[1 + number] = min(self._shared[1 + number] + 1, 255)
            try:
                return method(*arguments, **options)
            finally:
                self._shared[0] = before

        return marking

    def wait(self, child: int, phase: str, times: int) -> int | None:
        """Wait until the child has started a phase `times` times; return its status if it ended before, else None."""
        while phase != "between" and self.count_starts(phase) < times:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.0002)
        return None
