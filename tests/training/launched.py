"""What a rank does in the tests of the launcher. It never imports torch, so that a test takes a second.

python -m tests.training.launched ACTION
"""

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from regard.base.errors import RegardError, RetryError
from regard.training.distributed.rank import Worker, report_path
from regard.training.signals import handle_signals

KILLS = 4  # of a run that makes progress
SECONDS = 120  # far more than the launcher needs on a busy machine


def act(worker: Worker, action: str) -> int:
    sys.stdout.write(f"rank {worker.rank} of {worker.world_size}\n")
    sys.stdout.flush()
    is_first_attempt, is_last_rank = worker.attempt == 0, worker.rank == worker.world_size - 1
    match action:
        case "kill" if is_first_attempt and is_last_rank:
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop" if is_first_attempt and is_last_rank:
            os.kill(os.getpid(), signal.SIGSTOP)
        case "progress" if worker.attempt < KILLS:
            if is_last_rank:
                Path(os.environ["CHECKPOINTS"], f"step-{worker.attempt + 1:08}").mkdir(parents=True)
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(SECONDS)
        case "refuse" if is_last_rank:
            raise RegardError("There are too few sentences.", location="train.en", hint="Add some.")
        case "crash" if is_last_rank:
            raise ValueError("a defect")
        case "lost" if is_first_attempt and not is_last_rank:
            raise RetryError("Rank 0 lost the connection to another rank.")
        case "late" if is_last_rank:
            assert worker.folder is not None
            while not report_path(worker.folder, worker.attempt, 0, "end").exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill" | "stop" | "stop-early" | "refuse" | "crash" if is_first_attempt or action == "crash":
            time.sleep(SECONDS)  # as if in a collective with the other rank
        case "environment":
            names = ("OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME")
            sys.stdout.write(" ".join(f"{name}={os.environ[name]}" for name in names) + "\n")
        case "SIGTERM" | "SIGINT":
            return _wait_for_signal(worker, action)
        case "impatient":
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if worker.rank == 0:
                for _ in range(2):
                    time.sleep(0.3)
                    os.kill(os.getppid(), signal.SIGINT)
            time.sleep(SECONDS)
        case "wait":
            time.sleep(SECONDS)
    return int(action) if action.isdigit() else 0


def _wait_for_signal(worker: Worker, name: str) -> int:
    with handle_signals() as request:
        if worker.rank == 0:
            os.kill(os.getppid(), signal.Signals[name])
        deadline = time.monotonic() + SECONDS
        while not request and time.monotonic() < deadline:
            time.sleep(0.01)
        return 75 if request.signal_name == name else 1


def main() -> None:
    worker, action = Worker.from_environment(), sys.argv[1]
    assert worker is not None
    if action == "early":  # before the launcher knows the process
        if worker.rank == 0:
            os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(0.5)
    if action == "stop-early" and worker.attempt == 0 and worker.rank == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    sys.exit(worker.run(partial(act, worker, action)))


if __name__ == "__main__":
    main()
