"""Signal handling: SIGTERM or Ctrl-C saves a checkpoint and stops; a second Ctrl-C stops immediately."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from regard.training.distributed.rank import RELAYED_SIGTERM, is_launched


class StopRequest:
    """Records which signal requested a stop, if any."""

    def __init__(self) -> None:
        self.signal_name: str | None = None
        self.is_forced = False

    def __bool__(self) -> bool:
        return self.signal_name is not None

    def request(self, name: str) -> None:
        """Record a request that is not a signal."""
        self.signal_name = self.signal_name or name

    def handle(self, signum: int, _frame: FrameType | None) -> None:
        """Record a signal; the training loop checks for it between steps."""
        if self.signal_name is not None and signum == signal.SIGINT:
            self.is_forced = True
            raise KeyboardInterrupt
        self.signal_name = signal.Signals(signal.SIGTERM if signum == RELAYED_SIGTERM else signum).name


@contextmanager
def handle_signals() -> Iterator[StopRequest]:
    """Handle SIGTERM and Ctrl-C inside this block; no-op outside the main thread, where Python does not allow it.

    A rank of our launcher does not handle SIGTERM: the launcher uses it to end ranks after a failure, and forwards a
    user's SIGTERM as a different signal.
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
