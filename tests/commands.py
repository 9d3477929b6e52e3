"""Run the `regard` command inside this process, without importing torch each time."""

import io
import os
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import typer.main  # noqa: TID251

from regard.cli.app import app, run
from regard.cli.train import _print_next_steps
from regard.training.events import Finished


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    output: str
    errors: str


def run_command(*arguments: str, columns: int = 100) -> CommandResult:
    """Run `regard arguments...` on a terminal of this width, without colors."""
    output, errors, code = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="", write_through=True), io.StringIO(), 0
    environment = {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    with (
        mock.patch.object(sys, "argv", ["regard", *arguments]),
        mock.patch.dict(os.environ, environment),
        mock.patch("regard.cli.progress.FIRST_SECONDS", 1e6),  # progress lines depend on the speed
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            code = run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    output.seek(0)
    return CommandResult(code, output.read(), errors.getvalue())


def show_next_steps(folder: Path) -> str:
    """Return the commands that `regard train` prints after training a usable model."""
    output = io.StringIO()
    with redirect_stdout(output):
        _print_next_steps(Finished(1, "finished", folder))
    return output.getvalue()


def run_command_line(text: str, columns: int = 100) -> CommandResult:
    """Run a command line as a page shows it."""
    name, *arguments = shlex.split(text)
    assert name == "regard", f"only `regard` can be run here, not `{name}`"
    return run_command(*arguments, columns=columns)


def parse_command_line(text: str) -> None:
    """Parse a command line with the real options, without running it; a mistake raises an error.

    Files and models need not exist.
    """
    name, *arguments = shlex.split(text, comments=True)
    assert name == "regard", f"not a `regard` command: {text}"
    command: Any = typer.main.get_command(app)
    context = command.make_context("regard", arguments)
    while hasattr(command, "resolve_command"):  # a group
        remaining = [*getattr(context, "_protected_args", ()), *context.args]
        if not remaining and command.invoke_without_command:
            return
        name, command, arguments = command.resolve_command(context, remaining)
        for parameter in command.params:
            parameter.callback = None
        context = command.make_context(name, arguments, parent=context)
