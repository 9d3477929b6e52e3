"""Progress with the remaining time: a bar on a terminal, an updated line in a notebook, and lines in a log."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from typing import TYPE_CHECKING

from regard.base.errors import RegardWarning
from regard.base.formatting import format_duration
from regard.base.progress import Advance, listen
from regard.cli.notebook import NotebookOutput

if TYPE_CHECKING:
    from rich.progress import Progress  # noqa: TID251

FIRST_SECONDS = 5.0  # until the first line, so a short command prints none
SECONDS, LATER_SECONDS = 10.0, 60.0  # between lines, in the first minute and later
NOTEBOOK_SECONDS = 1.0  # between updates of the line in a notebook


@contextmanager
def show_progress(stage: str, total: int | None) -> Iterator[Advance]:
    """Show the progress of one stage on standard error; yields a function that advances it."""
    with show_stages() as begin:
        yield begin(stage, total)


@contextmanager
def show_stages() -> Iterator[Callable[[str, int | None], Advance]]:
    """Show the progress of stages reported through `regard.base.progress`; yields a function that starts a stage."""
    from rich.console import Console  # noqa: TID251 - a command that shows no progress starts faster
    from rich.progress import (  # noqa: TID251
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    is_live = console.is_terminal
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not is_live,
        redirect_stdout=sys.stdout.isatty(),  # otherwise Rich redirects output for a file or pipe to standard error
    ) as progress:

        def begin(stage: str, total: int | None) -> Advance:
            for number in progress.task_ids:
                progress.remove_task(number)
            task = progress.add_task(stage, total=total)

            def advance(count: int) -> None:
                if task in progress.task_ids:  # a stage inside this one removes it
                    progress.advance(task, count)

            return advance

        with listen(begin), nullcontext() if is_live else _print_lines(progress):
            yield begin


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print each Regard warning as one line on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", RegardWarning)
        warnings.showwarning = lambda message, *_, **__: print_line(message)
        yield


def print_line(line: object) -> None:
    """Print a line on standard error, above a progress bar: `typer.echo` would write into the bar."""
    sys.stderr.write(f"{line}\n")


@contextmanager
def _print_lines(progress: "Progress") -> Iterator[None]:
    """Print a line periodically from a thread, because one step may take minutes. A notebook updates a single line."""
    ended = Event()
    output = NotebookOutput() if progress.console.is_jupyter else None

    def run() -> None:
        seconds, elapsed = FIRST_SECONDS, 0.0
        while not ended.wait(NOTEBOOK_SECONDS if output else seconds):
            elapsed += seconds
            seconds = SECONDS if elapsed < LATER_SECONDS else LATER_SECONDS
            line = format_line(progress)
            if line and output is not None:
                output.show(line)
            elif line:
                progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def format_line(progress: "Progress") -> str:
    """Return the state of the current stage as one line: progress, elapsed and remaining time."""
    if not progress.tasks:
        return ""
    task = progress.tasks[-1]
    elapsed = task.elapsed or 0.0
    if not task.completed or task.total is None:
        count = f"{task.completed:,.0f} in " if task.completed else ""
        return f"{task.description}: {count}{format_duration(elapsed)} so far"
    left = elapsed * (task.total - task.completed) / task.completed
    share = f"{task.completed:,.0f} of {task.total:,.0f} ({task.completed / task.total:.0%})"
    return f"{task.description}: {share}, about {format_duration(left)} left"
