"""Processes that export the same model: one is killed at many places, then two run at once.

    python -m tests.exchange.export_processes FOLDER OTHER_FOLDER

Prints one JSON object. The processes are forked before anything uses torch: importing it once takes long enough.
"""

import json
import multiprocessing
import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from regard.base.files import verify
from regard.exchange import engine_cache, parity
from regard.store.export_folder import Engine, cache_folder, is_export

EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "shutil.rmtree")  # of Python's audit hooks
CONTEXT = multiprocessing.get_context("fork")


def load(folder: Path) -> list[str]:
    lines: list[str] = []
    pipeline = engine_cache.load_on_engine(folder, "auto", lambda: nullcontext(lines.append))
    return [pipeline.engine_name, *lines]


def load_until_killed(folder: Path, event: int) -> None:
    """Load a model; the process kills itself when it opens, renames or removes its nth file or folder of the cache."""
    count, place = 0, str(cache_folder(folder, "auto").parent)

    def count_events(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if name in EVENTS and str(arguments[0]).startswith(place):
            count += 1
            if count > event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count_events)
    load(folder)


def load_together(folder: Path, barrier: Any, lines: Any) -> None:
    """Load a model, after both processes have seen that there is no export."""
    module: Any = engine_cache
    find_export, checks = module.find_export, 0

    def find(folder: Path, engine: Engine) -> Path | None:
        nonlocal checks
        result: Path | None = find_export(folder, engine)
        checks += 1
        if checks == 1:
            barrier.wait(60)
        return result

    module.find_export = find
    lines.put(load(folder))


def kill_often(folder: Path) -> list[str]:
    """Return what each killed process has left behind: no export, or one that is complete."""
    cache, event, step = cache_folder(folder, "auto"), 0, 1
    outcomes: list[str] = []
    while True:
        process = CONTEXT.Process(target=load_until_killed, args=(folder, event))
        process.start()
        process.join()
        if process.exitcode != -signal.SIGKILL:
            return outcomes
        if is_export(cache):
            verify(cache)  # raises an error if it is not complete
        outcomes.append("complete" if is_export(cache) else "none")
        event, step = event + step, step + 1


def run_two(folder: Path) -> list[list[str]]:
    barrier, lines = CONTEXT.Barrier(2), CONTEXT.Queue()
    processes = [CONTEXT.Process(target=load_together, args=(folder, barrier, lines)) for _ in range(2)]
    for process in processes:
        process.start()
    outputs = [lines.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    return outputs


def main() -> None:
    torch.set_num_threads(1)
    parity.TEXTS = 1
    killed, shared = map(Path, sys.argv[1:])
    outcomes = kill_often(killed)
    left = sorted(path.name for path in cache_folder(killed, "auto").parent.iterdir())
    sys.stdout.write(json.dumps({"killed": outcomes, "left": left, "together": run_two(shared)}))


if __name__ == "__main__":
    main()
