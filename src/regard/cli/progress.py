"""Progress with the time left: a bar on a terminal, and now and then a line in a log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, Thread

from rich.console import Console  # noqa: TID251
from rich.progress import (  # noqa: TID251
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from regard.base.formatting import format_duration
from regard.base.progress import Advance, listen

FIRST_SECONDS = 5.0  # until the first line; a short command prints none
SECONDS, LATER_SECONDS = 10.0, 60.0  # between lines, in the first minute and later


@contextmanager
def show_progress(stage: str, total: int | None) -> Iterator[Advance]:
    """Show the progress of one stage on standard error; yields the function that advances it."""
    with show_stages() as begin:
        yield begin(stage, total)


@contextmanager
def show_stages() -> Iterator[Callable[[str, int | None], Advance]]:
    """Show the progress of the stages that packages report (`regard.base.progress`); yields what begins a stage."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    is_live = console.is_terminal
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not is_live,
        redirect_stdout=sys.stdout.isatty(),  # else Rich would print to standard error what belongs into a file or pipe
    ) as progress:

        def begin(stage: str, total: int | None) -> Advance:
            for number in progress.task_ids:
                progress.remove_task(number)
            task: TaskID = progress.add_task(stage, total=total)
            return lambda count: progress.advance(task, count)

        with listen(begin), nullcontext() if is_live else _print_lines(progress):
            yield begin


@contextmanager
def _print_lines(progress: Progress) -> Iterator[None]:
    """Print a line now and then, from a thread: a single step may take minutes."""
    ended = Event()

    def run() -> None:
        seconds, elapsed = FIRST_SECONDS, 0.0
        while not ended.wait(seconds):
            elapsed += seconds
            seconds = SECONDS if elapsed < LATER_SECONDS else LATER_SECONDS
            if line := format_line(progress):
                progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def format_line(progress: Progress) -> str:
    """Return the state of the current stage as one line: how far, how long, and the time left."""
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
