"""What `regard train --minutes` makes of its time: wall time, share in training steps, score and chosen threads.

    python -m bench.minutes                                              # all of it: about an hour
    python -m bench.minutes --kinds pairs --minutes 2 --load busy        # a part: default, 1 and 2 threads
    python -m bench.minutes --kinds text labels --minutes 1 --threads default
    python -m bench.minutes --quick                                      # one run of half a minute

pairs    the first 3,000 pairs of Multi30k (en-de); `score` is chrF of the best model on the first 300 validation pairs
text     tinyshakespeare; `score` is the best validation loss (lower is better)
labels   the sentences of SST-2; `score` is the best validation accuracy

Every run is the command itself in a process of its own, one after the other. A busy run shares the machine with two
processes that use a whole core each from its start to its end; this script starts and stops them. `time` is the wall
time from command to exit divided by --minutes, `steps` the share of --minutes inside optimizer steps. At 2 minutes,
pairs are also trained with each fixed thread count, and `of_best` is the chrF of the default divided by the best.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regard
from bench.training_cases import DATA_FOLDER
from bench.waiting import BUSY_PROCESSES, busy_machine
from regard.measure.bleu_chrf import chrf
from regard.tasks.search import Beam

N_PAIRS, N_TEST = 3000, 300
COMPARED_MINUTES = 2.0  # at which pairs are also trained with fixed thread counts
DEFAULT = "default"
FILES = {
    "pairs": ("multi30k/train.en.gz", "multi30k/train.de.gz"),
    "text": ("tinyshakespeare/input.txt.gz",),
    "labels": ("sst2_sentences/train.tsv.gz",),
}
TEST_FILES = ("multi30k/val.en.gz", "multi30k/val.de.gz")
OPTIONS = {"pairs": ("--source", "--target"), "text": ("--text",), "labels": ("--data",)}


@dataclass(frozen=True)
class Result:
    """One run."""

    seconds: float
    step_seconds: float
    steps: int
    threads: int
    score: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--minutes", nargs="+", type=float, default=[1, 2, 5])
    parser.add_argument("--load", nargs="+", choices=("idle", "busy"), default=["idle", "busy"])
    parser.add_argument("--threads", nargs="+", help="default, or fixed counts; default: see above")
    parser.add_argument("--quick", action="store_true", help="one run of half a minute on an idle machine")
    options = parser.parse_args()
    kinds, loads, all_minutes = (
        (["pairs"], ["idle"], [0.5]) if options.quick else (options.kinds, options.load, options.minutes)
    )
    figures: dict[str, float] = {}
    print(f"{'corpus':8} {'load':5} {'minutes':>7} {'threads':>9} {'steps':>8} {'steps':>6} {'time':>6} {'score':>8}")
    with tempfile.TemporaryDirectory() as folder:
        corpora = {kind: paths for kind in kinds if (paths := write_corpus(kind, Path(folder))) is not None}
        for minutes in all_minutes:
            for kind, paths in corpora.items():
                for load in loads:
                    is_compared = kind == "pairs" and minutes == COMPARED_MINUTES
                    all_threads = [DEFAULT, "1", str(os.cpu_count() or 1)] if is_compared else [DEFAULT]
                    scores = {}
                    for threads in options.threads or all_threads:
                        result = run(kind, paths, minutes, threads, load, Path(folder))
                        scores[threads] = result.score
                        name = f"{kind}-{load}-{minutes:g}" + ("" if threads == DEFAULT else f"-threads{threads}")
                        figures |= report(name, kind, load, minutes, threads, result)
                    if len(scores) > 1 and DEFAULT in scores:
                        share = scores[DEFAULT] / max(*scores.values(), 1e-9)
                        figures[f"of_best/{kind}-{load}-{minutes:g}"] = round(share, 3)
                        print(f"{'':8} {'':5} {'':7} the default has {share:.1%} of the best score", flush=True)
    print(json.dumps(figures))


def report(name: str, kind: str, load: str, minutes: float, threads: str, result: Result) -> dict[str, float]:
    """Print the line of a run and return its figures."""
    share, ratio = result.step_seconds / (60 * minutes), result.seconds / (60 * minutes)
    count = f"{result.threads} chosen" if threads == DEFAULT else threads
    line = f"{kind:8} {load:5} {minutes:7g} {count:>9} {result.steps:8,} {share:6.1%} {ratio:6.2f} {result.score:8.3f}"
    print(line, flush=True)
    values = {"time": ratio, "in_steps": share, "steps": result.steps, "score": result.score}
    return {f"{key}/{name}": round(value, 3) for key, value in values.items()}


def write_corpus(kind: str, folder: Path) -> list[str] | None:
    """Write the training files; None, with a message, if the corpus is not here."""
    sources = [DATA_FOLDER / name for name in FILES[kind]]
    if missing := [str(path) for path in sources if not path.is_file()]:
        print(f"{kind}: not measured, {', '.join(missing)} is missing.")
        return None
    paths = []
    for source in sources:
        path = folder / source.with_suffix("").name
        path.write_text("".join(read_lines(source, N_PAIRS if kind == "pairs" else None)), encoding="utf-8")
        paths.append(str(path))
    return paths


def read_lines(path: Path, count: int | None) -> list[str]:
    """Return the first lines of a .gz file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return list(file)[:count]


def run(kind: str, paths: list[str], minutes: float, threads: str, load: str, folder: Path) -> Result:
    """Train with the command, idle or next to busy processes."""
    out = Path(tempfile.mkdtemp(dir=folder)) / "run"
    files = [argument for pair in zip(OPTIONS[kind], paths, strict=True) for argument in pair]
    fixed = [] if threads == DEFAULT else ["--set", f"device.threads={threads}"]
    command = [sys.executable, "-m", "regard", "train", *files, "--minutes", str(minutes), "--out", str(out), *fixed]
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    with busy_machine(BUSY_PROCESSES if load == "busy" else 0):
        start = time.perf_counter()
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)  # noqa: S603
        seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    timing = read_jsonl(out / "timing.jsonl")[-1]
    settings = tomllib.loads((out / "run.toml").read_text(encoding="utf-8"))
    return Result(
        seconds, timing["step_seconds"], timing["step"], settings["device"]["threads"], compute_score(kind, out)
    )


def compute_score(kind: str, out: Path) -> float:
    """Return chrF on unseen pairs, or the best validation score."""
    test = [DATA_FOLDER / name for name in TEST_FILES]
    if kind == "pairs" and all(path.is_file() for path in test):
        sources, references = ([line.rstrip("\n") for line in read_lines(path, N_TEST)] for path in test)
        translator = regard.load_translator(out)
        return chrf([output.text for output in translator.translate(sources, Beam(1))], references).value
    values = [line["validation"] for line in read_jsonl(out / "metrics.jsonl") if "validation" in line]
    if kind == "text":
        return min(value["loss"] for value in values)
    return max(value["chrf" if kind == "pairs" else "accuracy"] for value in values)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
