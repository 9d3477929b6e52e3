"""Benchmark `train.compile` on a CPU: eager layers, each layer compiled, and the whole model compiled.

    python -m bench.compile            # 6 decoder layers of width 256
    python -m bench.compile --quick    # 2 of width 64, without the whole model

Every way runs in a process of its own with one thread and no cache: a step of 8 rows of 64 tokens, one of 8 rows of
80, and 20 of 8 rows of 64. `step` is the median CPU time of the last; `compile` is the CPU time of the process and of
the C++ compilers that it starts, less that of the eager one. The last line is JSON: CPU time of an eager step relative
to a compiled one, above 1 means that compiling is faster.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

SIZES = {False: (6, 256), True: (2, 64)}  # layers and width, by --quick
WAYS = ("eager", "layers", "whole")
ROWS, LENGTH, OTHER_LENGTH, STEPS = 8, 64, 80, 20


def measure(way: str, layers: int, width: int) -> float:
    """Return the CPU-seconds of a step."""
    import torch
    from tests.plan.runs import make_run

    from regard.models.build import build
    from regard.tasks.task import find_task
    from regard.training.objective import Objective

    torch.set_num_threads(1)
    changes = {"d_model": width, "decoder__layers": layers, "decoder__feedforward__d_ff": 4 * width}
    run = make_run(**{f"model__{name}": value for name, value in changes.items()})
    model = build(run.model, seed=1).train()
    objective = Objective.from_run(model, run, should_compile=way == "layers")
    if way == "whole":
        model.read_batch = torch.compile(model.read_batch, dynamic=True)  # type: ignore[method-assign]
    task = find_task(run.model.task)

    def step(length: int) -> float:
        batch = task.synthetic_batch(run, ROWS, length)
        start = time.process_time()
        objective(batch).total.backward()
        return time.process_time() - start

    step(LENGTH)
    step(OTHER_LENGTH)
    return median(step(LENGTH) for _ in range(STEPS))


def main() -> None:
    """Print the table, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small model")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    layers, width = SIZES[options.quick]
    if options.way:
        print(measure(options.way, layers, width))
        return
    steps, totals = dict[str, float](), dict[str, float]()
    print("way      compile, CPU-s  step, ms")
    for way in WAYS[: 2 if options.quick else 3]:
        steps[way], totals[way] = run([*sys.argv[1:], "--way", way])
        print(f"{way:7}  {totals[way] - totals['eager']:14.1f}  {1000 * steps[way]:8.1f}", flush=True)
    print(json.dumps({f"eager/{way}": round(steps["eager"] / steps[way], 3) for way in steps if way != "eager"}))


def run(arguments: list[str]) -> tuple[float, float]:
    """Measure in a new process; return the CPU-seconds of a step, and of the process with all that it started."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryFile("w+") as output:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        command = [sys.executable, "-m", "bench.compile", *arguments]
        process = subprocess.Popen(command, stdout=output, env=environment)  # noqa: S603 - our own command
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{command} ended with status {status}")
        output.seek(0)
        return float(output.read().split()[-1]), usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
