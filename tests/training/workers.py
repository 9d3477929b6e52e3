"""Run a function on several ranks: clean processes, a store in a file, listeners on 127.0.0.1 only, a time limit.

    results = run_workers("tests.training.ranks_cases:train", 2, {"mode": "ddp"}, folder=tmp_path, timeout=60)

Every rank imports the function by its path, calls it with the arguments and returns a JSON value. Processes are never
forked from a process that has used autograd: such a child can hang.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import regard

ROOT = Path(__file__).parents[2]


def make_environment(rank: int, world_size: int, store: Path, attempt: int = 0) -> dict[str, str]:
    """Return the environment of a rank, as a launcher sets it."""
    return {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "REGARD_STORE": str(store),
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join((str(Path(regard.__file__).parents[1]), str(ROOT))),
    }


def run_workers(
    function_path: str,
    world_size: int,
    args: Mapping[str, Any] | None = None,
    *,
    folder: Path,
    timeout: float = 60.0,
) -> list[Any]:
    """Call `module:function` on every rank; return the results by rank.

    Raises:
        AssertionError: If a rank fails or the time is over; all others are killed. The message has their output.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob("workers-*")))
    place = folder / f"workers-{number}"
    place.mkdir()
    command = [sys.executable, "-m", "tests.training.workers", function_path, json.dumps(dict(args or {}))]
    processes, deadline = [], time.monotonic() + timeout
    for rank in range(world_size):
        with (place / f"{rank}.txt").open("wb") as output:
            environment = make_environment(rank, world_size, place / "store") | {"RESULT": str(place / f"{rank}.json")}
            processes.append(
                subprocess.Popen(  # noqa: S603 - our own command
                    command, env=environment, cwd=ROOT, stdout=output, stderr=output, start_new_session=True
                )
            )
    try:
        while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
            if any(process.poll() for process in processes):
                deadline = min(deadline, time.monotonic() + 10)  # one has failed: the others follow soon
            time.sleep(0.02)
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    codes = [process.returncode for process in processes]
    if any(codes):
        outputs = "\n".join(f"--- rank {rank}\n{(place / f'{rank}.txt').read_text()}" for rank in range(world_size))
        raise AssertionError(f"{function_path} on {world_size} ranks: exit codes {codes}\n{outputs}")
    return [json.loads((place / f"{rank}.json").read_text()) for rank in range(world_size)]


def main() -> None:
    """Run the function of the command line on this rank."""
    module, _, name = sys.argv[1].partition(":")
    result = getattr(importlib.import_module(module), name)(**json.loads(sys.argv[2]))
    Path(os.environ["RESULT"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
