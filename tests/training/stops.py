"""Stop a run at random steps, again and again, by every means; it must end like an uninterrupted run.

    python -m tests.training.stops --stops 30        # each kind of run: "30 of 30 stops as meant; 0 files differ"
    python -m tests.training.stops early=8           # 8 stops of a run that stops early (validation.patience)

Children are forked from a process that has imported torch already, so that each stop costs only a resume. Three
means in turn: SIGTERM (the run saves and leaves), a pause at a step (a step limit), SIGKILL (at any event of an
step: before it, after it, between saving and validating).
"""

import argparse
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.training.events import Diverged, Event, Listener, Saved, StepFinished, Validated
from regard.training.run import fit, resume
from tests.training.runs import (
    DIVERGING,
    EARLY_STOP,
    PATIENCE,
    RECURRENT,
    TASKS,
    compute_fingerprints,
    make_small_run,
    read_metrics,
    write_corpus,
)

EARLY = "early"  # a run that stops before its last step
DIVERGED = "diverged"  # a run that diverges and recovers
CHANGES: dict[str, dict[str, Any]] = {
    EARLY: PATIENCE,
    DIVERGED: DIVERGING,
    RECURRENT: {"train.steps": 16, "train.film_points": 3},  # a step takes three times as long
}
METHODS = ("terminate", "pause", "kill")
Start = Callable[[list[Listener], int | None], object]


def run_until_stopped(start: Start, step: int, method: str) -> int:
    """Run in a child process that is stopped at (or soon after) a step; return how the child ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            pause = step if method == "pause" else None
            start([] if method == "pause" else [_make_stopper(step, method)], pause)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _make_stopper(step: int, method: str) -> Listener:
    number = signal.SIGTERM if method == "terminate" else signal.SIGKILL

    def listener(event: Event) -> None:
        # Killed at whichever comes first from there on: a step, a checkpoint, a validation.
        if isinstance(event, StepFinished | Saved | Validated | Diverged) and event.step >= step:
            os.kill(os.getpid(), number)

    return listener


def prove(task: str, folder: Path, stops: int, seed: int) -> tuple[int, list[str]]:
    """Stop a run `stops` times; return how often a child ended as expected, and the files that differ at the end."""
    files = write_corpus(folder / "corpus")
    changes = {"train.film_points": 4, **CHANGES.get(task, {})}
    run = make_small_run("translation" if task in (EARLY, DIVERGED) else task, files, changes)
    undisturbed, disturbed = folder / "undisturbed", folder / "disturbed"
    end = fit(run, undisturbed)  # in this process, so that the children inherit its imports
    if (end.reason, end.step) != (("no improvement", EARLY_STOP) if task == EARLY else ("finished", run.train.steps)):
        raise AssertionError(f"The undisturbed run ended otherwise: {end}")
    if task == DIVERGED and not any("divergence" in line for line in read_metrics(undisturbed)):
        raise AssertionError("The undisturbed run did not diverge.")
    expected = compute_fingerprints(undisturbed)
    rng = random.Random(seed)
    differing, expected_exits, remaining = [], 0, stops
    while remaining > 0:  # each iteration trains one run to its end
        steps = sorted(rng.sample(range(1, end.step), min(remaining, 10)))
        remaining -= len(steps)
        run_folder = disturbed / str(remaining)
        for number, step in enumerate(steps):
            method = METHODS[rng.randrange(len(METHODS))]

            def start(
                listeners: list[Listener], pause: int | None, is_first: bool = number == 0, run_path: Path = run_folder
            ) -> None:
                if is_first:
                    fit(run, run_path, listeners=listeners, pause_at=pause)
                else:
                    resume(run_path, listeners=listeners, pause_at=pause)

            code = run_until_stopped(start, step, method)
            expected_exits += code == (-signal.SIGKILL if method == "kill" else 0)
        resume(run_folder)
        actual = compute_fingerprints(run_folder)
        differing += [
            f"{name} after stops at {steps}"
            for name in expected.keys() | actual.keys()
            if expected.get(name) != actual.get(name)
        ]
    return expected_exits, differing


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", nargs="*", default=(*TASKS, EARLY, RECURRENT, DIVERGED))
    parser.add_argument("--stops", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = False
    for name in options.runs:
        task, _, number = name.partition("=")
        stops = int(number or options.stops)
        with tempfile.TemporaryDirectory() as folder:
            expected_exits, differing = prove(task, Path(folder), stops, options.seed)
        sys.stdout.write(f"{task}: {expected_exits} of {stops} stops as meant; {len(differing)} files differ\n")
        sys.stdout.write("".join(f"  {line}\n" for line in differing))
        sys.stdout.flush()
        failed = failed or bool(differing) or expected_exits != stops
    sys.exit(failed)


if __name__ == "__main__":
    main()
