"""Fair timing on a noisy machine: all contestants run in one process, in turns, and are compared by CPU time.

    restart_with_tuned_malloc()                     # first line of a benchmark's `main`
    times = race({"ours": our_step, "theirs": their_step}, seconds=60)
    print(format_table(times, ours="ours"))
    ratio(times["theirs"], times["ours"])           # > 1: ours is faster

Times measured minutes apart differ by a third on shared machines, CPU times too. Turns a second apart do not. So the
reliable figure is the ratio within a round; `ratio` returns its median over the rounds.
"""

import gc
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

# Keeps large tensors on the heap. Otherwise every step faults its pages in again (a third of the time where there are
# logits over a large vocabulary). glibc only; other C libraries ignore the variable.
TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8000000000:glibc.malloc.hugetlb=1"

Times = dict[str, list[float]]  # CPU milliseconds of each round, by contestant


def restart_with_tuned_malloc() -> None:
    """Re-execute this command with the tuned allocator; glibc reads its settings only at process start."""
    if sys.platform.startswith("linux") and os.environ.get("GLIBC_TUNABLES") != TUNABLES:
        sys.stdout.flush()
        environment = {**os.environ, "GLIBC_TUNABLES": TUNABLES}
        os.execve(sys.executable, sys.orig_argv, environment)  # noqa: S606 - the same program, no shell


def race(
    steps: Mapping[str, Callable[[], object]],
    *,
    seconds: float,
    min_rounds: int = 3,
    warm_up: int = 2,
    clocks: Mapping[str, Callable[[], float]] | None = None,
) -> Times:
    """Run every step once per round, in a random order, until `seconds` of wall time have passed.

    Python's garbage collector is off during the timed rounds.

    Args:
        steps: The function to time, by contestant.
        seconds: Wall time, the warm-up included.
        min_rounds: Minimum number of timed rounds.
        warm_up: Number of rounds that are not timed; the heap grows to its final size in them.
        clocks: CPU-seconds so far of contestants that compute in another process; the others have this process's.

    Returns:
        CPU milliseconds of each round, by contestant.
    """
    deadline = time.perf_counter() + seconds
    for _ in range(warm_up):
        for step in steps.values():
            step()
    times: Times = {name: [] for name in steps}
    order = list(steps)
    rng = random.Random(0)  # noqa: S311 - an order, not a secret
    gc.collect()
    gc.disable()
    try:
        rounds, longest_round = 0, 0.0
        while rounds < min_rounds or time.perf_counter() + longest_round < deadline:
            round_start = time.perf_counter()
            rng.shuffle(order)
            for name in order:
                clock = (clocks or {}).get(name, time.process_time)
                step_start = clock()
                steps[name]()
                times[name].append(1000 * (clock() - step_start))
            longest_round = max(longest_round, time.perf_counter() - round_start)
            rounds += 1
    finally:
        gc.enable()
    return times


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """Return the median over all rounds of their time / our time.

    >>> ratio([2.0, 6.0, 4.0], [1.0, 2.0, 2.0])
    2.0
    """
    return statistics.median(their / our for their, our in zip(theirs, ours, strict=True))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return first quartile, median and third quartile.

    >>> quartiles([5.0, 1.0, 4.0, 2.0, 3.0])
    (2.0, 3.0, 4.0)
    """
    if len(values) < 2:
        return values[0], values[0], values[0]
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, middle, third


def format_table(times: Times, *, ours: str) -> str:
    """Format one line per contestant: time and ratio to ours, both with quartiles, and the ratio of the best times."""
    lines = [f"{'':<12}{'CPU ms/step':>12}{'quartiles':>18}{'ratio':>9}{'quartiles':>15}{'best':>8}{'rounds':>8}"]
    for name, values in times.items():
        low, middle, high = quartiles(values)
        line = f"{name:<12}{middle:>12.1f}{f'{low:.1f} - {high:.1f}':>18}"
        if name != ours:
            low_ratio, median_ratio, high_ratio = quartiles(
                [their / our for their, our in zip(values, times[ours], strict=True)]
            )
            line += (
                f"{median_ratio:>9.3f}{f'{low_ratio:.3f}-{high_ratio:.3f}':>15}{min(values) / min(times[ours]):>8.3f}"
            )
        else:
            line += f"{'1':>9}{'':>15}{'1':>8}"
        lines.append(f"{line}{len(values):>8}")
    return "\n".join(lines)
