"""The command itself: module, help and version."""

import subprocess
import sys

from tests.cli.factories import run_regard


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "regard", "model", "show", "nothing"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("'nothing' is neither a preset nor a file.")


def test_help_and_version() -> None:
    assert run_regard("--version").startswith("regard 0.")
    assert "List all settings and presets" in run_regard("--help")
