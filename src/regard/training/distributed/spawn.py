"""Start a run as several ranks from Python: `regard.train(..., ranks=2)`, and `tune` and `resume` likewise.

The ranks are processes of their own, `python -m regard.training.distributed.spawn FOLDER`, that read the options from a
file and never import the caller's program: it needs no `if __name__ == "__main__"`. Rank 0 appends its events to a
file, and the calling process passes them on to the listeners.
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
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.training import events
from regard.training.api import start
from regard.training.distributed.rank import Worker
from regard.training.events import Event, Finished, Listener, Message, Planned, SampleOutput, Validated
from regard.training.options import FinishedError, TrainOptions, UsageError

OPTIONS_FILE, EVENTS_FILE = "options.json", "events.jsonl"
PATH_OPTIONS = ("run", "out", "resume", "parent", "add_tokens", "chat_template")
POLL_SECONDS = 0.1
CTRL_C = 128 + signal.SIGINT


def start_ranks(options: TrainOptions, ranks: int, listeners: Sequence[Listener] = ()) -> Finished:
    """Train as several ranks of this host and return how the run ended.

    Listeners are called in a thread. If one raises an error, the run saves and stops, and the error is raised here.

    Raises:
        RegardError: The options are wrong, this is not the main thread, or the ranks failed.
    """
    if ranks < 1:
        raise UsageError(f"{options.format_option('ranks')} must be positive, got {ranks}.", hint="Give at least 1.")
    if threading.current_thread() is not threading.main_thread():
        message = "Several ranks are started from the main thread only: Ctrl-C and SIGTERM are passed on to them."
        raise RegardError(message, hint="Call it in the main thread, or run `regard train --ranks` as a process.")
    options.check()
    from regard.training.distributed.launcher import launch  # these import torch.distributed: only when needed
    from regard.training.distributed.rendezvous import check_ranks

    check_ranks(ranks, options.device_name)
    if options.resume is not None and options.more is not None:  # a total, which a further attempt can repeat
        from regard.training.run import add_steps

        options = replace(options, steps=add_steps(options.resume, options.more), more=None)
    with tempfile.TemporaryDirectory(prefix="regard-run-") as name:
        folder, finished = Path(name), list[Finished]()
        _write_options(options, folder / OPTIONS_FILE)

        def receive(event: Event) -> None:
            for listener in listeners:
                listener(event)
            if isinstance(event, Finished):
                finished.append(event)

        with _forward_events(folder / EVENTS_FILE, receive):
            arguments = ["-m", "regard.training.distributed.spawn", name]
            code = launch(arguments, ranks, report=lambda line: receive(Message(line, "warning")))
    if finished:
        return finished[-1]
    if code == CTRL_C:
        raise KeyboardInterrupt
    raise RegardError(f"The run was stopped before it had begun (code {code}).", hint="Start it again.")


def _write_options(options: TrainOptions, path: Path) -> None:
    path.write_text(json.dumps(asdict(options), default=str), encoding="utf-8")


def _read_options(path: Path) -> TrainOptions:
    content = json.loads(path.read_bytes())
    content |= {name: Path(content[name]) for name in PATH_OPTIONS if content[name] is not None}
    content["languages"] = None if content["languages"] is None else tuple(content["languages"])
    return TrainOptions(**content)


@contextmanager
def _forward_events(path: Path, receive: Callable[[Event], None]) -> Iterator[None]:
    """Pass the events in a growing file on, inside this block; raise the error of `receive` at its end."""
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
        except BaseException as error:  # of a listener: in one process it would end the run
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
    """Return the event of a line; None for what a killed rank left unfinished."""
    try:
        content: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    kind = getattr(events, content.pop("event"))
    for name in ("folder", "path"):
        if name in content:
            content[name] = Path(content[name])
    if kind is Planned:
        content["reasons"] = tuple(content["reasons"])
    if kind is Validated:
        content["samples"] = tuple(SampleOutput(**sample) for sample in content["samples"])
    event: Event = kind(**content)
    return event


def _train_rank(worker: Worker, folder: Path) -> int:
    """Train as one rank; the exit code is 0 however the run ends: the caller reads the reason from its last event."""
    options = _read_options(folder / OPTIONS_FILE)
    if worker.attempt:
        options = options.for_next_attempt()
    with (folder / EVENTS_FILE).open("a", encoding="utf-8") as file:

        def write(event: Event) -> None:
            line = json.dumps({"event": type(event).__name__, **asdict(event)}, default=str)
            file.write(f"{line}\n")
            file.flush()

        if worker.rank == 0:
            file.write("\n")  # ends a line that was cut off in the attempt before
        try:
            start(options, [write] if worker.rank == 0 else [])
        except FinishedError:
            if worker.attempt == 0:
                raise  # else: the attempt before finished the run, and failed after that
    return 0


def main() -> None:
    """Run as one of the ranks."""
    worker = Worker.from_environment()
    assert worker is not None  # noqa: S101 - only the launcher starts this module
    sys.exit(worker.run(lambda: _train_rank(worker, Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
