"""SIGTERM and Ctrl-C ask a run to save and stop; a second Ctrl-C stops it at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Asked:
    """Whether somebody asked the run to stop, and how."""

    def __init__(self) -> None:
        self.by: str | None = None
        self.insisted = False

    def __bool__(self) -> bool:
        return self.by is not None

    def hear(self, number: int, _frame: FrameType | None) -> None:
        """A signal has come: remember it; the loop looks between updates."""
        if self.by is not None and number == signal.SIGINT:
            self.insisted = True
            raise KeyboardInterrupt
        self.by = signal.Signals(number).name


@contextmanager
def listening() -> Iterator[Asked]:
    """Hear SIGTERM and Ctrl-C meanwhile; outside the main thread Python cannot, and nothing changes."""
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, asked.hear) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    except Exception as error:
        if asked.insisted:  # compiled code that was interrupted may tell it as an error of its own
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
