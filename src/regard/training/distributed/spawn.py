"""Start a run as several ranks from Python: `ranks=2` in `regard.train`, `regard.tune` and `regard.resume`.

The ranks are separate processes, `python -m regard.training.distributed.spawn FOLDER`, which read the options from a
file and never import the caller's program, so it needs no `if __name__ == "__main__"`. Rank 0 appends its events to a
file, and the calling process forwards them to the listeners.
"""

import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from regard.base.errors import RegardError
from regard.training import events
from regard.training.api import start
from regard.training.distributed.rank import Worker, check_launcher
from regard.training.events import Event, Finished, Listener, Message
from regard.training.options import FinishedError, TrainOptions, UsageError

OPTIONS_FILE, EVENTS_FILE = "options.json", "events.jsonl"
POLL_SECONDS = 0.1
CTRL_C = 128 + signal.SIGINT


def start_ranks(options: TrainOptions, ranks: int, listeners: Sequence[Listener] = ()) -> Finished:
    """Train as several ranks on this host and return the result of the run.

    Listeners are called in a thread. If a listener raises an error, the run saves a checkpoint and stops, and the error
    is raised here.

    Raises:
        RegardError: The options are wrong, this is not the main thread, or the ranks failed.
    """
    if ranks < 1:
        raise UsageError(f"{options.format_option('ranks')} must be positive, got {ranks}.", hint="Give at least 1.")
    if threading.current_thread() is not threading.main_thread():
        message = "Several ranks can only be started from the main thread, which forwards Ctrl-C and SIGTERM to them."
        raise RegardError(message, hint="Call it in the main thread, or run `regard train --ranks` as a process.")
    options.check()
    check_launcher()
    from regard.store.run_folder import RunFolder
    from regard.training.distributed.launcher import launch  # these import torch.distributed: only when needed
    from regard.training.distributed.rendezvous import check_ranks

    check_ranks(ranks, options.device_name)
    if options.resume is not None and options.more is not None:  # an absolute total, so a retry can reuse it
        from regard.training.run import add_steps

        options = replace(options, steps=add_steps(options.resume, options.more), more=None)
    with tempfile.TemporaryDirectory(prefix="regard-run-") as name:
        folder, finished = Path(name), list[Finished]()
        (folder / OPTIONS_FILE).write_text(json.dumps(asdict(options), default=str), encoding="utf-8")

        def receive(event: Event) -> None:
            answers = [listener(event) for listener in listeners]
            if True in answers and not finished:
                os.kill(os.getpid(), signal.SIGINT)  # the ranks save and stop
            if isinstance(event, Finished):
                finished.append(event)

        with _forward_events(folder / EVENTS_FILE, receive):
            arguments = ["-m", "regard.training.distributed.spawn", name]
            checkpoints = None if options.folder is None else RunFolder(options.folder).checkpoints
            code = launch(
                arguments, ranks, report=lambda line: receive(Message(line, "warning")), checkpoints=checkpoints
            )
    if finished:
        return finished[-1]
    if code == CTRL_C:
        raise KeyboardInterrupt
    raise RegardError(f"The run was stopped before it began (code {code}).", hint="Start the run again.")


@contextmanager
def _forward_events(path: Path, receive: Callable[[Event], None]) -> Iterator[None]:
    """Forward events from a growing file inside this block; raise an error of `receive` at the end."""
    is_over, failures = threading.Event(), list[BaseException]()
    path.touch()

    def forward() -> None:
        with path.open("rb") as file:
            rest, is_last = b"", False
            while not is_last:
                is_last = is_over.wait(POLL_SECONDS)
                *lines, rest = (rest + file.read()).split(b"\n")
                for line in lines:
                    if (event := _parse_event(line)) is not None:
                        receive(event)

    def forward_or_stop() -> None:
        try:
            forward()
        except BaseException as error:  # a listener's error; in one process it would end the run
            failures.append(error)
            if not is_over.is_set():
                os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=forward_or_stop, name="forward the events of rank 0")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        if failures:
            raise failures[0]


def _parse_event(line: bytes) -> Event | None:
    """Parse the event in a line; return None for a line that a killed rank left incomplete."""
    try:
        content: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return _make_adapter(content.pop("event")).validate_python(content)


@cache
def _make_adapter(name: str) -> TypeAdapter[Event]:
    return TypeAdapter(getattr(events, name))


def _train_rank(worker: Worker, folder: Path) -> int:
    """Train as one rank. The exit code is always 0: the caller reads the reason from the last event."""
    options = TrainOptions.from_arguments(json.loads((folder / OPTIONS_FILE).read_bytes()))
    if worker.attempt:
        options = options.for_next_attempt()
    with (folder / EVENTS_FILE).open("a", encoding="utf-8") as file:

        def write(event: Event) -> None:
            line = json.dumps({"event": type(event).__name__, **asdict(event)}, default=str)
            file.write(f"{line}\n")
            file.flush()

        if worker.rank == 0:
            file.write("\n")  # ends a line that was cut off in the previous attempt
        try:
            start(options, [write] if worker.rank == 0 else [])
        except FinishedError:
            if worker.attempt == 0:
                raise  # otherwise the previous attempt finished the run and failed afterwards
    return 0


def main() -> None:
    """Run as one of the ranks."""
    worker = Worker.from_environment()
    assert worker is not None  # noqa: S101 - only the launcher starts this module
    sys.exit(worker.run(lambda: _train_rank(worker, Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
