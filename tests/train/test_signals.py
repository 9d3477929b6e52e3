"""Requests to stop are remembered, insisting leaves at once, and afterwards everything is as it was."""

import signal

import pytest

from regard.train.signals import listening


def _asked_to_stop(*signals: signal.Signals, then: Exception | None = None) -> str | None:
    """Work that hears these signals; an interrupt in it may be told as another error, as compiled code does."""
    with listening() as asked:
        try:
            for number in signals:
                signal.raise_signal(number)
        except KeyboardInterrupt:
            if then is None:
                raise
        if then is not None:
            raise then
        return asked.by


def test_the_first_signal_is_remembered() -> None:
    assert _asked_to_stop() is None
    assert _asked_to_stop(signal.SIGTERM) == "SIGTERM"
    assert _asked_to_stop(signal.SIGINT, signal.SIGTERM) == "SIGTERM"


def test_a_second_ctrl_c_leaves_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        _asked_to_stop(signal.SIGINT, signal.SIGINT)


def test_an_interrupt_that_compiled_code_tells_as_an_error_of_its_own_still_is_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        _asked_to_stop(signal.SIGINT, signal.SIGINT, then=ValueError("could not determine the shape"))


def test_errors_stay_errors_though_a_stop_was_asked_for() -> None:
    with pytest.raises(ValueError, match="broken"):
        _asked_to_stop(signal.SIGINT, then=ValueError("broken"))


def test_the_handlers_of_before_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    _asked_to_stop(signal.SIGTERM)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
