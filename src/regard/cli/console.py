"""Console output of the commands and `regard.train`: tables and run events."""

import functools
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251

if TYPE_CHECKING:
    from regard.training.events import Event, Listener

FILE_WIDTH = 10_000


def make_console() -> Console:
    """Return a console for standard output, as wide as the terminal; lines are not wrapped if there is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=FILE_WIDTH)


@contextmanager
def show_events(*, explain: bool = False, is_stderr: bool = False) -> "Iterator[Listener]":
    """Show events live on a terminal or in a notebook, otherwise as plain lines; `explain` adds details."""
    from regard.cli.display import Display, NotebookDisplay  # only when needed
    from regard.training.event_lines import LineLogger, remove_details

    console = Console(stderr=is_stderr)
    show: AbstractContextManager[Listener] = nullcontext(LineLogger(functools.partial(typer.echo, err=is_stderr)))
    if console.is_jupyter:
        show = NotebookDisplay()
    elif (sys.stderr if is_stderr else sys.stdout).isatty() and not console.is_dumb_terminal:
        show = Display(console)
    with show as listener:

        def show_brief(event: "Event") -> None:
            if (brief := remove_details(event)) is not None:
                listener(brief)

        yield listener if explain else show_brief
