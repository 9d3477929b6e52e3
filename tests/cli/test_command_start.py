"""When the command started."""

import sys
import time

import pytest

from regard.cli.command_start import command_start


def test_command_start_inside_another_program_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "pytest"])
    before = time.perf_counter()
    assert command_start() >= before
