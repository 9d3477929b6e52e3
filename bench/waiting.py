"""Training steps with one thread, with threads that sleep and with threads that spin while they wait.

    python -m bench.waiting               # about six minutes
    python -m bench.waiting --quick       # under one minute: one model, three rounds
    python -m bench.waiting --cases mini lm-small --load busy --rounds 7

Forward, backward and optimizer step on random tokens, idle and next to two processes that use a whole core each, which
this script starts and stops. OpenMP reads its policy when a process starts, so each variant is a process that waits
between its turns; the variants take turns, and a ratio is the median over the rounds.

passive     all threads, `OMP_WAIT_POLICY=passive`: what `import regard` sets
spinning    all threads, `GOMP_SPINCOUNT=300000`: the default of libgomp
1 thread    one thread

In the last line, `idle_cost` is passive / spinning time on the idle machine (1: no cost), and its median over models.
`busy/idle_1` is the speed of passive threads under load against one thread without load, `busy/busy_1` against one
thread under the same load, and `busy/spinning` against spinning threads under the same load (above 1: faster).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

CASES: dict[str, tuple[str, int, int, int]] = {  # preset, vocabulary, rows, tokens per row
    "mini": ("mini", 1000, 40, 24),
    "tiny": ("tiny", 10_000, 64, 32),
    "lm-small": ("lm-small", 72, 8, 256),
    "encoder-tiny": ("encoder-tiny", 4000, 40, 24),
}
VARIANTS: dict[str, tuple[int, dict[str, str]]] = {  # threads (0: all), environment
    "passive": (0, {"OMP_WAIT_POLICY": "passive"}),
    "spinning": (0, {"GOMP_SPINCOUNT": "300000"}),
    "1 thread": (1, {"OMP_WAIT_POLICY": "passive"}),
}
VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS")
BUSY_PROCESSES = 2
Times = dict[str, list[float]]  # seconds of each round, by variant


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one model and three rounds")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--load", nargs="+", choices=("idle", "busy"), default=["idle", "busy"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--child", nargs=2, metavar=("CASE", "THREADS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        time_steps(options.child[0], int(options.child[1]))
        return
    cases, rounds = (["mini"], 3) if options.quick else (options.cases, options.rounds)
    figures: dict[str, float] = {}
    print(f"{'model':14} {'load':6} " + " ".join(f"{name:>12}" for name in VARIANTS) + "   median seconds per step")
    for case in cases:
        times = measure(case, options.load, rounds)
        for load, by_variant in times.items():
            medians = " ".join(f"{statistics.median(by_variant[name]):12.4f}" for name in VARIANTS)
            print(f"{case:14} {load:6} {medians}", flush=True)
        figures |= compare(case, times)
    costs = [value for name, value in figures.items() if name.startswith("idle_cost/")]
    if costs:
        figures["idle_cost"] = round(statistics.median(costs), 3)
    print(json.dumps(figures))


def compare(case: str, times: dict[str, Times]) -> dict[str, float]:
    """Return the ratios of a model."""

    def divide(first: list[float], second: list[float]) -> float:
        return round(statistics.median(a / b for a, b in zip(first, second, strict=True)), 3)

    figures = {}
    if "idle" in times:
        figures[f"idle_cost/{case}"] = divide(times["idle"]["passive"], times["idle"]["spinning"])
    if "busy" in times:
        busy = times["busy"]
        figures[f"busy/busy_1/{case}"] = divide(busy["1 thread"], busy["passive"])
        figures[f"busy/spinning/{case}"] = divide(busy["spinning"], busy["passive"])
    if len(times) == 2:
        figures[f"busy/idle_1/{case}"] = divide(times["idle"]["1 thread"], times["busy"]["passive"])
    return figures


def measure(case: str, loads: list[str], rounds: int) -> dict[str, Times]:
    """Time all variants in turns, each in a process of its own, under every load."""
    times: dict[str, Times] = {load: {name: [] for name in VARIANTS} for load in loads}
    with ExitStack() as stack:
        children = {
            name: stack.enter_context(start_child(case, threads, environment))
            for name, (threads, environment) in VARIANTS.items()
        }
        for child in children.values():
            ask(child)  # the first turn builds the model and grows the heap
        for load in loads:
            with busy_machine(BUSY_PROCESSES if load == "busy" else 0):
                for number in range(rounds):
                    for name in list(VARIANTS)[:: 1 if number % 2 else -1]:
                        times[load][name].append(ask(children[name]))
    return times


@contextmanager
def start_child(case: str, threads: int, environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that times steps whenever it reads a line, and end it."""
    command = [sys.executable, "-m", "bench.waiting", "--child", case, str(threads)]
    inherited = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    child = subprocess.Popen(  # noqa: S603 - our own
        command, env=inherited | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def ask(child: "subprocess.Popen[str]") -> float:
    """Let a child time some steps; return its median seconds per step."""
    if child.stdin is None or child.stdout is None:
        raise AssertionError("it was started with pipes")
    child.stdin.write("\n")
    child.stdin.flush()
    return float(child.stdout.readline())


@contextmanager
def busy_machine(processes: int) -> Iterator[None]:
    """Run processes that use a whole core each, and end them."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def time_steps(case: str, threads: int) -> None:
    """For each line of standard input, print the seconds of one step."""
    import regard  # noqa: F401, I001 - before torch, as programs should
    import torch

    from regard.tasks.task import find_task
    from regard.config.codec import RUN_FILES
    from regard.training.autotune import StepTimer

    preset, vocabulary, rows, length = CASES[case]
    if threads:
        torch.set_num_threads(threads)
    table = "tokens" if preset == "lm-small" else "source"
    run = RUN_FILES.parse(
        {
            "model": {"preset": preset, table: {"vocabulary": vocabulary}},
            "data": {
                "train": [{"kind": "lines", "source": "unused"}],
                "batch_tokens": rows * length,
                "max_length": length,
            }
            | ({"masking": {}} if preset.startswith("encoder") else {}),
            "train": {
                "steps": 1,
                "step_tokens": rows * length,
                "schedule": {"kind": "constant", "lr": 1e-3},
                "optimizer": {"kind": "adam"},
            },
            "device": {"name": "cpu", "logit_rows": 0, "attention": "autocast"},
        }
    )
    timer = StepTimer(run, find_task(run.model.task).synthetic_batch(run, rows, length))
    for _ in sys.stdin:
        print(timer.time_step(), flush=True)


if __name__ == "__main__":
    main()
