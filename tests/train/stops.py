"""Stop a run at random updates, again and again, by every means; it must end as if nobody had touched it.

    python -m tests.train.stops --stops 30        # each family: "0 of 30 stops left a trace"

Children are forked from a process that has imported torch already, so that each stop costs a resume and no more. Three
means in turn: SIGTERM (the run saves and leaves), a pause at an update (a step limit), SIGKILL (at any event of an
update: before it, after it, between saving and validating).
"""

import argparse
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from regard.train.events import Event, Listener, Saved, Updated, Validated
from regard.train.fit import fit, resume
from tests.train.runs import FAMILIES, corpus, fingerprints, small_run

MEANS = ("terminate", "pause", "kill")
Start = Callable[[list[Listener], int | None], object]


def stopped(start: Start, update: int, means: str) -> int:
    """Run in a child until it is stopped at (or soon after) an update; how the child ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            pause = update if means == "pause" else None
            start([] if means == "pause" else [_stopper(update, means)], pause)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _stopper(update: int, means: str) -> Listener:
    number = signal.SIGTERM if means == "terminate" else signal.SIGKILL

    def hear(event: Event) -> None:
        # Killed at whichever comes first from there on: an update, a checkpoint, a validation.
        if isinstance(event, Updated | Saved | Validated) and event.update >= update:
            os.kill(os.getpid(), number)

    return hear


def prove(task: str, folder: Path, stops: int, seed: int) -> tuple[int, list[str]]:
    """Stop a run so many times; how often a child ended as it should, and what differs at the end."""
    run = small_run(task, corpus(folder / "corpus"))
    undisturbed, disturbed = folder / "undisturbed", folder / "disturbed"
    fit(run, undisturbed)  # in this process: what it imports, the children need not
    wanted = fingerprints(undisturbed)
    draw = random.Random(seed)
    found, good, left = [], 0, stops
    while left > 0:  # the updates of one life of the run, then a new life
        some = sorted(draw.sample(range(1, run.train.updates), min(left, 10)))
        left -= len(some)
        place = disturbed / str(left)
        for number, update in enumerate(some):
            means = MEANS[draw.randrange(len(MEANS))]

            def start(
                listeners: list[Listener], pause: int | None, first: bool = number == 0, at: Path = place
            ) -> None:
                if first:
                    fit(run, at, listeners=listeners, pause_at=pause)
                else:
                    resume(at, listeners=listeners, pause_at=pause)

            code = stopped(start, update, means)
            good += code == (-signal.SIGKILL if means == "kill" else 0)
        resume(place)
        now = fingerprints(place)
        found += [
            f"{name} after stops at {some}" for name in wanted.keys() | now.keys() if wanted.get(name) != now.get(name)
        ]
    return good, found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--stops", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = False
    for task in options.families:
        with tempfile.TemporaryDirectory() as folder:
            good, found = prove(task, Path(folder), options.stops, options.seed)
        sys.stdout.write(f"{task}: {good} of {options.stops} stops as meant; {len(found)} files differ\n")
        sys.stdout.write("".join(f"  {line}\n" for line in found))
        failed = failed or bool(found) or good != options.stops
    sys.exit(failed)


if __name__ == "__main__":
    main()
