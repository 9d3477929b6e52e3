"""`regard info` reports what is installed, and how to install what is not."""

import json
import sys

import pytest
import torch

import regard
from regard.cli.info import available_memory
from tests.commands import run_command


def test_info_lists_versions_device_and_memory() -> None:
    done = run_command("info")
    assert done.code == 0, done.errors
    for line in (f"regard   {regard.__version__} in ", f"torch    {torch.__version__}", "device   cpu, ", "memory   "):
        assert line in done.output


def test_a_missing_extra_has_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.base.extras.find_spec", lambda name: None if name == "lingua" else object())
    extras = json.loads(run_command("info", "--json").output)["extras"]
    assert extras["language"]["missing"] == ["lingua"]
    assert extras["formats"] == {**extras["formats"], "missing": [], "install": None}
    lines = run_command("info").output.splitlines()
    row = next(number for number, line in enumerate(lines) if "language" in line)
    assert lines[row].endswith(": not installed")
    assert lines[row + 1].strip() == extras["language"]["install"]
    assert sys.version.split()[0] in lines[1]


def test_available_memory_is_read_from_the_system() -> None:
    assert 1e8 < available_memory() < 1e15
