"""What a learning rate ten times too high does to each task: a usable model, or a message that names the setting.

    python -m bench.divergence                          # seven tasks at 1 and 10 times their learning rate: ten minutes
    python -m bench.divergence --tasks tagging "causal LM"
    python -m bench.divergence --factor 100
    python -m bench.divergence --quick                  # image classification alone, 60 steps

Each task is trained twice, as `regard train --steps` does on one thread, with the learning rate that Regard chooses and
with `--factor` times that. A step has 1,024 tokens (2,048 for audio), so a run takes less than a CPU-minute. The score
is the best validation score. A model is usable if Regard says so, or if its score is not much worse than with the usual
learning rate (a loss at most 15 % higher, another score at most 15 % lower). Otherwise the last line of the run must
name the setting of the learning rate.
"""

import argparse
import gzip
import itertools
import json
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regard
from bench.training_cases import DATA_FOLDER
from regard.config.codec import RUN_FILES
from regard.training.events import Diverged, Event, Finished, Spiked
from regard.training.schedule import get_rate_setting
from regard.training.validate import HIGHER_IS_BETTER

STEPS, QUICK_STEPS = 200, 60
TOLERANCE = 0.15
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SHAKESPEARE = "tinyshakespeare/input.txt.gz"


@dataclass(frozen=True)
class Task:
    """A corpus, and how much of it a step reads."""

    files: tuple[str, ...]
    make_arguments: Callable[[list[Path]], dict[str, Any]]
    lines: int | None = None  # the first lines of each file
    step_tokens: int = 1024
    preset: str | None = None
    task: str | None = None


TASKS = {
    "translation": Task(
        ("multi30k/train.en.gz", "multi30k/train.de.gz"), lambda paths: {"source": paths[0], "target": paths[1]}, 6000
    ),
    "causal LM": Task((SHAKESPEARE,), lambda paths: {"text": paths}),
    "masked LM": Task((SHAKESPEARE,), lambda paths: {"text": paths}, preset="encoder-tiny", task="masked_lm"),
    "text classification": Task(("sst2_sentences/train.tsv.gz",), lambda paths: {"data": paths}),
    "tagging": Task(("ud_english_ewt/en_ewt-ud-train.conllu.gz",), lambda paths: {"data": paths}, 60_000),
    "image classification": Task(
        ("fashion_mnist/train10k-images-idx3-ubyte.gz", "fashion_mnist/train10k-labels-idx1-ubyte.gz"),
        lambda paths: {"images": paths[:1]},
    ),
    "transcription": Task(
        ("fsdd/fsdd_recordings.tar.gz",), lambda paths: {"audio": [write_table(paths[0])]}, step_tokens=2048
    ),
}


@dataclass(frozen=True)
class Result:
    """One run."""

    rate: float
    metric: str
    score: float | None
    spikes: int
    recoveries: int
    finished: Finished
    seconds: float  # of CPU time

    def is_usable(self, usual: "Result") -> bool:
        """Whether Regard calls the model usable, or its score is close to that of the usual learning rate."""
        if self.score is None or usual.score is None or self.finished.reason == "divergence":
            return False
        if not self.finished.shortfall:
            return True
        if self.metric in HIGHER_IS_BETTER:
            return self.score >= (1 - TOLERANCE) * usual.score
        return self.score <= (1 + TOLERANCE) * usual.score

    def outcome(self, usual: "Result") -> str:
        """Return what the user has at the end."""
        if self.is_usable(usual):
            return "usable"
        return "message" if "train.schedule." in self.finished.shortfall else "neither"


def main() -> None:
    """Train each task twice and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--factor", type=float, default=10.0, help="on the usual learning rate (default: 10)")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--quick", action="store_true", help="image classification alone, in under a minute")
    options = parser.parse_args()
    names, steps = (["image classification"], QUICK_STEPS) if options.quick else (options.tasks, options.steps)
    figures: dict[str, Any] = {}
    print("| task | metric | usual rate | score | rate | score | spikes | recoveries | outcome |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            paths = read_corpus(TASKS[name], Path(folder) / name.replace(" ", "-"))
            if paths is None:
                print(f"{name}: not measured, its corpus is missing.")
                continue
            usual = train(TASKS[name], paths, steps, None)
            high = train(TASKS[name], paths, steps, options.factor * usual.rate)
            outcome = high.outcome(usual)
            print(
                f"| {name} | {usual.metric} | {usual.rate:g} | {format_score(usual.score)} | {high.rate:g} | "
                f"{format_score(high.score)} | {high.spikes} | {high.recoveries} | {outcome} |",
                flush=True,
            )
            if outcome != "usable":
                print(f"  {name}: {high.finished.reason}. {high.finished.shortfall}", flush=True)
            figures |= {
                f"{name}/usual": usual.score,
                f"{name}/score": high.score,
                f"{name}/recoveries": high.recoveries,
                f"{name}/outcome": outcome,
                f"{name}/cpu_seconds": round(usual.seconds + high.seconds, 1),
            }
    print(json.dumps(figures))


def train(task: Task, paths: list[Path], steps: int, rate: float | None) -> Result:
    """Train a task with the usual learning rate, or another one."""
    out = Path(tempfile.mkdtemp(dir=paths[0].parent)) / "run"
    events: list[Event] = []
    settings: dict[str, Any] = {
        "train.step_tokens": task.step_tokens,
        "train.save_every": max(1, steps // 10),
        "validation.every_steps": max(1, steps // 6),
        "validation.sentences": 50,
        "validation.max_tokens": 20_000,
        "device.threads": 1,
        "device.attention": "autocast",
        "device.logit_rows": 1024,
    }
    settings |= {"model.task": task.task} if task.task else {}
    settings |= {"train.schedule.lr": rate} if rate is not None else {}
    start = time.process_time()
    finished = regard.train(
        **task.make_arguments(paths),
        out=out,
        steps=steps,
        preset=task.preset,
        settings=settings,
        listeners=[events.append],
        progress=False,
    )
    run = RUN_FILES.load(out / "run.toml")
    diverged = [event for event in events if isinstance(event, Diverged)]
    return Result(
        get_rate_setting(run.train.schedule)[1],
        run.validation.metric,
        finished.best_scores.get(run.validation.metric),
        sum(isinstance(event, Spiked) for event in events) - len(diverged),
        len(diverged) - (finished.reason == "divergence"),
        finished,
        time.process_time() - start,
    )


def read_corpus(task: Task, folder: Path) -> list[Path] | None:
    """Write the files of a task into a folder; None if one is missing."""
    sources = [DATA_FOLDER / name for name in task.files]
    if not all(source.is_file() for source in sources):
        return None
    folder.mkdir()
    return [unpack(source, folder, task.lines) for source in sources]


def unpack(source: Path, folder: Path, lines: int | None) -> Path:
    """Write a compressed file, or its first lines; the recordings of an archive become a folder."""
    if source.name.endswith(".tar.gz"):
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        return folder / "recordings"
    path = folder / source.with_suffix("").name
    with gzip.open(source) as file:
        path.write_bytes(b"".join(itertools.islice(file, lines)))
    return path


def write_table(recordings: Path) -> Path:
    """Write a table of recordings and the words that are spoken in them."""
    path = recordings.parent / "words.tsv"
    files = sorted(recordings.glob("*_*_*.wav"))
    rows = [f"{recordings.name}/{file.name}\t{WORDS[int(file.name[0])]}\n" for file in files]
    path.write_text("".join(["file\ttext\n", *rows]), encoding="utf-8")
    return path


def format_score(score: float | None) -> str:
    """Format a score, if there is one."""
    return "none" if score is None else f"{score:.3f}"


if __name__ == "__main__":
    main()
