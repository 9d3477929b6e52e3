"""Benchmark `regard prepare`: CPU-seconds per GB, peak memory, and the ratios to the bare tokenizer and to one worker.

    python -m bench.scale.prepare            # 0.1, 0.5 and 2 GB
    python -m bench.scale.prepare --quick    # 0.01 and 0.02 GB, one round

The text is `books_en` (64 MB, one document per paragraph), repeated up to the size. A byte-level BPE of 16,000 tokens
is learned from its first 5 MB. Every measurement is a process of its own, from its start to its end:

bare       reads the file and encodes batches of 1,000 paragraphs with the `tokenizers` library on one core; writes
           nothing.
1, 2       `regard prepare` with one and two workers.

At the smallest size the three run in turns and the ratios are medians over the rounds: bare/prepare compares
CPU-seconds (of `prepare` with two workers, all processes together; goal 0.95), speed-up compares the wall time of one
and two workers and needs two idle cores. Larger sizes run once: the middle one with one and two workers (speed-up with
less start-up in it; goal 1.8), the largest with two. Memory is the resident peak of the largest process. The last line
is JSON.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.corpora import DATA, require

VOCABULARY, LEARN_BYTES = 16_000, 5_000_000
WORKERS, GOALS = 2, {"bare/prepare": 0.95, "speed-up of the middle size": 1.8}
BARE = """
import sys
from itertools import islice
import tokenizers
tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
with open(sys.argv[2], encoding="utf-8", newline="\\n") as file:
    paragraphs = (line.removesuffix("\\n") for line in file if line != "\\n")
    while batch := list(islice(paragraphs, 1000)):
        ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False)]
"""


class Cost(NamedTuple):
    """What a process and the processes that it starts cost."""

    cpu: float
    wall: float
    memory: int  # resident bytes of the largest process at its peak


def run(*command: object) -> Cost:
    """Run a Python process with one thread for tokenization and return its cost."""
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as messages:  # shown only if the command fails
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, *map(str, command)], env=environment, stdout=subprocess.DEVNULL, stderr=messages
        )
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            messages.seek(0)
            raise SystemExit(f"{messages.read()}\n{command} ended with status {status}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, usage.ru_maxrss << 10)


def write_text(path: Path, size: int) -> None:
    """Write a file of about `size` bytes of whole lines."""
    with path.open("wb") as out:
        while (missing := size - out.tell()) > 0:
            with gzip.open(DATA / "books_en/train.txt.gz") as book:
                out.writelines(book.readlines(missing))


def learn_tokenizer(text: Path, folder: Path) -> Path:
    """Learn a tokenizer from the start of a text."""
    from regard.config.tokenizers import ByteBpeConfig
    from regard.text.learn import learn
    from regard.text.tokenizer_pair import TokenizerPair

    with text.open(encoding="utf-8") as file:
        lines = file.readlines(LEARN_BYTES)
    TokenizerPair.joint(learn(iter(lines), ByteBpeConfig(vocabulary=VOCABULARY))).save(folder)
    return folder / "tokenizer.json"


def prepare(text: Path, folder: Path, workers: int) -> Cost:
    """Measure `regard prepare`; the shards are removed."""
    settings = folder / "run.toml"
    path = json.dumps(str(text))
    settings.write_text(
        f'[data]\n[[data.train]]\nkind = "documents"\npath = {path}\nseparator = ""\n', encoding="utf-8"
    )
    shards = folder / "shards"
    cost = run("-m", "regard", "prepare", settings, shards, "--tokenizer", folder, "--workers", workers)
    shutil.rmtree(shards)
    return cost


def compare(text: Path, tokenizer: Path, rounds: int) -> tuple[dict[str, Cost], dict[str, float]]:
    """Run bare, one and two workers in turns; return their median costs and the ratios."""
    costs: dict[str, list[Cost]] = {"bare": [], "1": [], str(WORKERS): []}
    for _ in range(rounds):
        costs["bare"].append(run("-c", BARE, tokenizer, text))
        for workers in (1, WORKERS):
            costs[str(workers)].append(prepare(text, tokenizer.parent, workers))
    turns = list(zip(costs["bare"], costs["1"], costs[str(WORKERS)], strict=True))
    ratios = {
        "bare/prepare": median(bare.cpu / several.cpu for bare, _, several in turns),
        "bare/prepare, 1 worker": median(bare.cpu / one.cpu for bare, one, _ in turns),
        "speed-up": median(one.wall / several.wall for _, one, several in turns),
    }
    return {name: Cost(*map(median, zip(*values, strict=True))) for name, values in costs.items()}, ratios


def format_row(size: int, name: str, cost: Cost) -> str:
    """Format a row of the table."""
    gigabytes = size / 1e9
    return f"{gigabytes:5.2f}  {name:>7}  {cost.cpu / gigabytes:10.0f}  {cost.wall:8.1f}  {cost.memory / 1e6:10.0f}"


def main() -> None:
    """Print the table, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="0.01 and 0.02 GB")
    options = parser.parse_args()
    require("books_en")
    sizes, rounds = ([10**7, 2 * 10**7], 1) if options.quick else ([10**8, 5 * 10**8, 2 * 10**9], 3)
    with tempfile.TemporaryDirectory() as name:
        text = Path(name, "text.txt")
        write_text(text, sizes[0])
        tokenizer = learn_tokenizer(text, Path(name))
        print("   GB  workers  CPU-s per GB    wall s  memory, MB", flush=True)
        costs, ratios = compare(text, tokenizer, rounds)
        for workers, cost in costs.items():
            print(format_row(sizes[0], workers, cost), flush=True)
        smallest = costs[str(WORKERS)]
        write_text(text, sizes[1])
        costs = {str(workers): prepare(text, Path(name), workers) for workers in (1, WORKERS)}
        for workers, cost in costs.items():
            print(format_row(sizes[1], workers, cost), flush=True)
        ratios["speed-up of the middle size"] = costs["1"].wall / costs[str(WORKERS)].wall
        largest = costs[str(WORKERS)]
        if len(sizes) > 2:
            write_text(text, sizes[2])
            largest = prepare(text, Path(name), WORKERS)
            print(format_row(sizes[2], str(WORKERS), largest), flush=True)
    for goal, value in GOALS.items():
        print(f"{goal}: {ratios[goal]:.3f}; goal {value}")
    figures = {goal: round(value, 3) for goal, value in ratios.items()}
    print(json.dumps({**figures, "memory of the largest size": round(smallest.memory / largest.memory, 3)}))


if __name__ == "__main__":
    main()
