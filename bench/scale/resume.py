"""Resume in each window of an epoch: CPU-seconds until the first step, and whether the samples are the same.

    python -m bench.scale.resume             # 64 windows of 200,000 samples each
    python -m bench.scale.resume --quick     # 16 windows of 20,000 samples each

The epoch is run once without a stop. Then a new loader, as in a new process, resumes in the middle of every window.
The last line is JSON: the CPU time of the last window divided by that of the first. Goal: at most 1.5.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.order import DataPosition, Order, OrderSettings

WINDOW, REPEATS, MAX_RATIO = 16, 5, 1.5
NEXT = 100  # batches that are compared; they are in the same window


def make_order(windows: int, samples: int) -> Order:
    """Return the order of shards with random lengths."""

    def lengths(shard: int) -> NDArray[np.int64]:
        return np.random.default_rng(shard).integers(5, 90, (2, samples // WINDOW))

    return Order([samples // WINDOW] * WINDOW * windows, lengths, OrderSettings(window_size=WINDOW))


def read(order: Order, position: DataPosition, count: int) -> str:
    """Return the sha256 of the next batches."""
    order.resume(position)
    digest = hashlib.sha256()
    batches = order.batches(position.epoch, position.next_global_batch, position.window, position.window_start)
    for _, (number, _, batch) in zip(range(count), batches, strict=False):
        digest.update(str(number).encode() + batch.samples.tobytes())
    return digest.hexdigest()


def find_positions(order: Order) -> tuple[list[DataPosition], list[str]]:
    """Return the position in the middle of each window, and the hash of the batches after it."""
    positions, expected, window_of_last = list[DataPosition](), list[str](), -1
    for number, window, _ in order.batches(0):
        if window.index != window_of_last and number - window.start == len(window) // 2:
            window_of_last = window.index
            positions.append(DataPosition(0, number, order.fingerprint, window.index, window.start))
            digest = hashlib.sha256()
            for local in range(len(window) // 2, min(len(window) // 2 + NEXT, len(window))):
                digest.update(str(window.start + local).encode() + window[local].samples.tobytes())
            expected.append(digest.hexdigest())
    return positions, expected


def measure(windows: int, samples: int, positions: Sequence[DataPosition]) -> list[float]:
    """Return the CPU-seconds until the first batch after each position, interleaved; the median of some runs."""
    seconds: list[list[float]] = [[] for _ in positions]
    for _ in range(REPEATS):
        for index, position in enumerate(positions):
            order = make_order(windows, samples)
            start = time.process_time()
            read(order, position, 1)
            seconds[index].append(time.process_time() - start)
    return list(map(median, seconds))


def main() -> None:
    """Print a row per window, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="16 small windows")
    options = parser.parse_args()
    windows, samples = (16, 20_000) if options.quick else (64, 200_000)
    positions, expected = find_positions(make_order(windows, samples))
    assert len(positions) == windows  # noqa: S101
    read_again = [read(make_order(windows, samples), position, NEXT) for position in positions]
    are_equal = read_again == expected
    shown = sorted({0, 1, windows // 4, windows // 2, windows - 1})
    seconds = measure(windows, samples, [positions[index] for index in shown])
    print("window  first batch  CPU-s until the first batch")
    for index, value in zip(shown, seconds, strict=True):
        print(f"{index:6}  {positions[index].next_global_batch:11,}  {value:.3f}")
    ratio = seconds[-1] / seconds[0]
    print(f"the same samples after all {windows} positions: {are_equal}; goal for the ratio: {MAX_RATIO}")
    figures = {"windows": windows, "last/first": round(ratio, 3), "equal": are_equal, **asdict(positions[-1])}
    del figures["fingerprint"]
    print(json.dumps(figures))
    if ratio > MAX_RATIO or not are_equal:
        raise SystemExit("A goal is missed.")


if __name__ == "__main__":
    main()
