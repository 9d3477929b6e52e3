"""A signal requests a stop, a second Ctrl-C stops at once, and the previous handlers are restored."""

import signal

import pytest

from regard.training.signals import handle_signals


def _raise_signals(*signals: signal.Signals, error: Exception | None = None) -> str | None:
    """Raise these signals; with `error`, raise it instead of KeyboardInterrupt, as compiled code does."""
    with handle_signals() as request:
        try:
            for signum in signals:
                signal.raise_signal(signum)
        except KeyboardInterrupt:
            if error is None:
                raise
        if error is not None:
            raise error
        return request.signal_name


def test_the_first_signal_is_remembered() -> None:
    assert _raise_signals() is None
    assert _raise_signals(signal.SIGTERM) == "SIGTERM"
    assert _raise_signals(signal.SIGINT, signal.SIGTERM) == "SIGTERM"


def test_a_second_ctrl_c_leaves_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        _raise_signals(signal.SIGINT, signal.SIGINT)


def test_an_interrupt_that_compiled_code_raises_as_its_own_error_still_is_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        _raise_signals(signal.SIGINT, signal.SIGINT, error=ValueError("could not determine the shape"))


def test_errors_stay_errors_though_a_stop_was_asked_for() -> None:
    with pytest.raises(ValueError, match="broken"):
        _raise_signals(signal.SIGINT, error=ValueError("broken"))


def test_the_handlers_of_before_come_back() -> None:
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    _raise_signals(signal.SIGTERM)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
