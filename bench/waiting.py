"""Threads that spin against threads that sleep while they wait, alone and beside a process that uses a whole core.

    python -m bench.waiting
    python -m bench.waiting --quick       # one second each instead of five

OpenMP reads its policy when a process starts, so each case is a process of its own: forward and backward of preset
`mini`, 80 x 24 tokens. The ratios compare the default, two spinning threads, with the other cases.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
from torch.nn import functional as F

from regard.config.codec import preset
from regard.models.build import build

CASES: dict[str, tuple[int, dict[str, str]]] = {  # threads, environment
    "2 threads": (2, {}),
    "2 threads, passive": (2, {"OMP_WAIT_POLICY": "passive"}),
    "1 thread": (1, {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one second per case")
    parser.add_argument("--case", nargs=2, metavar=("THREADS", "SECONDS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(time_steps(int(options.case[0]), float(options.case[1])))
        return
    seconds = "1" if options.quick else "5"
    ratios = {}
    print(f"{'':20} {'idle':>8} {'beside a busy process':>22}")
    idle = {name: run(threads, environment, seconds) for name, (threads, environment) in CASES.items()}
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            busy = {name: run(threads, environment, seconds) for name, (threads, environment) in CASES.items()}
        finally:
            other.kill()
    for name in CASES:
        print(f"{name:20} {idle[name]:7.3f}s {busy[name]:21.3f}s")
        if name != "2 threads":
            ratios[f"waiting-idle/{name}"] = round(idle[name] / idle["2 threads"], 2)
            ratios[f"waiting-busy/{name}"] = round(busy[name] / busy["2 threads"], 2)
    print(json.dumps(ratios))


def run(threads: int, environment: dict[str, str], seconds: str) -> float:
    """Time a case in a process of its own."""
    command = [sys.executable, "-m", "bench.waiting", "--case", str(threads), seconds]
    result = subprocess.run(  # noqa: S603
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )
    return float(result.stdout)


def time_steps(threads: int, seconds: float) -> float:
    """Return the median seconds of forward and backward through two batches."""
    torch.set_num_threads(threads)
    model = build(preset("mini", {"source.vocabulary": 2000}), seed=0).train()
    tokens = torch.randint(0, 2000, (40, 24))  # (B, T)

    def step() -> float:
        start = time.perf_counter()
        for _ in range(2):
            F.cross_entropy(model(tokens, tokens).flatten(0, 1), tokens.flatten()).backward()
        model.zero_grad()
        return time.perf_counter() - start

    for _ in range(3):
        step()
    times, deadline = list[float](), time.perf_counter() + seconds
    while time.perf_counter() < deadline or not times:
        times.append(step())
    return statistics.median(times)


if __name__ == "__main__":
    main()
