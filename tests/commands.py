"""Run the `regard` command inside this process, without importing torch each time."""

import io
import os
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

from regard.cli import main


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    output: str
    errors: str


def run_command(*arguments: str, columns: int = 100) -> CommandResult:
    """Run `regard arguments...` on a terminal of this width, without colours."""
    output, errors, code = io.StringIO(), io.StringIO(), 0
    environment = {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    with (
        mock.patch.object(sys, "argv", ["regard", *arguments]),
        mock.patch.dict(os.environ, environment),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return CommandResult(code, output.getvalue(), errors.getvalue())


def run_command_line(text: str, columns: int = 100) -> CommandResult:
    """Run a command line as a page shows it."""
    name, *arguments = shlex.split(text)
    assert name == "regard", f"only `regard` can be run here, not `{name}`"
    return run_command(*arguments, columns=columns)
