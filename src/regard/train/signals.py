"""SIGTERM and Ctrl-C ask a run to save and stop; a second Ctrl-C stops it at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Whether somebody asked the run to stop, and how."""

    def __init__(self) -> None:
        self.signal_name: str | None = None
        self.is_forced = False

    def __bool__(self) -> bool:
        return self.signal_name is not None

    def handle(self, signum: int, _frame: FrameType | None) -> None:
        """A signal has come: remember it; the loop looks between updates."""
        if self.signal_name is not None and signum == signal.SIGINT:
            self.is_forced = True
            raise KeyboardInterrupt
        self.signal_name = signal.Signals(signum).name


@contextmanager
def handle_signals() -> Iterator[StopRequest]:
    """Hear SIGTERM and Ctrl-C meanwhile; outside the main thread Python cannot, and nothing changes."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    previous_handlers = {signum: signal.signal(signum, request.handle) for signum in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    except Exception as error:
        if request.is_forced:  # compiled code that was interrupted may tell it as an error of its own
            raise KeyboardInterrupt from error
        raise
    finally:
        for signum, handler in previous_handlers.items():
            signal.signal(signum, handler)
