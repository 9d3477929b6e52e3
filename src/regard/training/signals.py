"""Signal handling: SIGTERM or Ctrl-C saves and stops a run; a second Ctrl-C stops it at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from regard.training.distributed.rank import RELAYED_SIGTERM, is_launched


class StopRequest:
    """Records whether a signal requested a stop, and which one."""

    def __init__(self) -> None:
        self.signal_name: str | None = None
        self.is_forced = False

    def __bool__(self) -> bool:
        return self.signal_name is not None

    def handle(self, signum: int, _frame: FrameType | None) -> None:
        """Record a signal; the training loop checks for it between steps."""
        if self.signal_name is not None and signum == signal.SIGINT:
            self.is_forced = True
            raise KeyboardInterrupt
        self.signal_name = signal.Signals(signal.SIGTERM if signum == RELAYED_SIGTERM else signum).name


@contextmanager
def handle_signals() -> Iterator[StopRequest]:
    """Handle SIGTERM and Ctrl-C inside this block; does nothing outside the main thread, where Python forbids it.

    A rank of our launcher leaves SIGTERM alone: the launcher ends ranks with it when another one has failed, and passes
    on the SIGTERM of a user as another signal.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    stop_signal = RELAYED_SIGTERM if is_launched() else signal.SIGTERM
    previous_handlers = {signum: signal.signal(signum, request.handle) for signum in (stop_signal, signal.SIGINT)}
    try:
        yield request
    except Exception as error:
        if request.is_forced:  # interrupted compiled code may raise its own error instead
            raise KeyboardInterrupt from error
        raise
    finally:
        for signum, handler in previous_handlers.items():
            signal.signal(signum, handler)
