"""Benchmark the start of training: CPU time of `regard train` from process start until the first step has ended.

    python -m bench.first_step                        # 25,000 pairs of Multi30k and 1 million of Europarl and Tatoeba
    python -m bench.first_step --quick                # 25,000 pairs only
    python -m bench.first_step --other OTHER/src      # compare with another checkout, in turns

The commands run with their defaults and one thread. Times are user + system time, worker processes included; the table
has the median of the rounds for each stage without the stages inside it. The last output line is JSON.
"""

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

from bench.corpora import DATA, require
from bench.peers import ROOT

SOURCE = ROOT / "src"
GOALS = {25_000: 8.0, 1_000_000: 60.0}  # CPU-seconds by number of pairs
STAGES = {  # functions whose time is shown, "module:function" or "module:class.method"; missing ones are left out
    "regard.training.recipes.configure:collect_stats": "read, statistics",
    "regard.data.doctor.one_pass:TrainingCheck.conclude": "corpus check",
    "regard.training.recipes.configure:configure": "settings",
    "regard.training.api:_describe_cost": "cost estimate",
    "regard.training.tokenizers:make_tokenizers": "vocabulary",
    "regard.training.data:_make_shards": "token shards",
    "regard.training.resolve:resolve_run": "model settings",
    "regard.training.autotune:autotune": "tuning",
    "regard.training.publish:write_start": "first files",
    "regard.training.trainer:Trainer.__init__": "model, optimizer",
    "regard.training.trainer:Trainer._start": "start of training",
    "regard.training.trainer:Trainer._step": "first step",
}
LAST = "first step"
Stages = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="25,000 pairs only")
    parser.add_argument("--other", type=Path, help="`src` folder of another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--probe", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        probe(*options.probe)
        return
    require("multi30k", *([] if options.quick else ["europarl_deen"]))
    checkouts = {"this": SOURCE} | ({} if options.other is None else {"other": options.other.resolve()})
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for pairs in list(GOALS)[: 1 if options.quick else None]:
            source, target = write_corpus(Path(folder), pairs)
            rounds: dict[str, list[Stages]] = {name: [] for name in checkouts}
            for _ in range(1 if options.quick and options.other is None else options.rounds):
                for name, checkout in checkouts.items():
                    with tempfile.TemporaryDirectory() as out:
                        rounds[name].append(measure(checkout, source, target, f"{out}/model"))
            medians = {name: take_medians(values) for name, values in rounds.items()}
            print_table(pairs, medians)
            results[str(pairs)] = medians
    print(json.dumps({"cpu_s": results, "goals": GOALS}))


def write_corpus(folder: Path, pairs: int) -> tuple[str, str]:
    """Write that many distinct pairs; a text that is used again gets a number."""
    names = ["multi30k/train"] if pairs <= min(GOALS) else ["europarl_deen/train", "tatoeba_deen/train"]
    names = [name for name in names if (DATA / f"{name}.en.gz").is_file()]
    paths = []
    for language in ("en", "de"):
        lines = [line for name in names for line in read_lines(DATA / f"{name}.{language}.gz")]
        path = folder / f"train-{pairs}.{language}"
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for number in range(pairs):
                copy, row = divmod(number, len(lines))
                file.write(lines[row] + (f" ({copy})" if copy else "") + "\n")
        paths.append(str(path))
    return paths[0], paths[1]


def read_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def measure(checkout: Path, source: str, target: str, out: str) -> Stages:
    """Run `regard train` of a checkout until its first step has ended."""
    environment = {**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bench.first_step", "--probe", source, target, out]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    lines = [line for line in finished.stdout.splitlines() if line.startswith("{")]
    if not lines:
        sys.exit(f"regard train failed:\n{finished.stdout}\n{finished.stderr}")
    return json.loads(lines[-1])


def take_medians(rounds: list[Stages]) -> Stages:
    """Return the stages of the round with the median total."""
    return sorted(rounds, key=lambda stages: sum(stages.values()))[len(rounds) // 2]


def print_table(pairs: int, medians: dict[str, Stages]) -> None:
    print(f"{f'{pairs:,} pairs, CPU-seconds':<36}{''.join(f'{name:>10}' for name in medians)}")
    totals = {name: sum(stages.values()) for name, stages in medians.items()}
    lines = {
        stage: [stages.get(stage, 0.0) for stages in medians.values()]
        for stage in dict.fromkeys(stage for stages in medians.values() for stage in stages)
    }
    lines[f"before the first step (goal: {GOALS[pairs]:g})"] = [
        totals[name] - stages[LAST] for name, stages in medians.items()
    ]
    lines["with it"] = list(totals.values())
    for title, values in lines.items():
        print(f"  {title:<34}{''.join(f'{value:10.2f}' for value in values)}")
    print()


class Clock:
    """The CPU time of each stage, without the stages inside it."""

    def __init__(self) -> None:
        self.stages: Stages = {}
        self._open, self._last = ["start, other"], 0.0

    def mark(self) -> None:
        """Add the time since the last mark to the innermost open stage."""
        now, name = cpu_time(), self._open[-1]
        self.stages[name] = self.stages.get(name, 0.0) + now - self._last
        self._last = now

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        """Do the work as a stage; after the last stage, print all of them and exit."""
        self.mark()
        self._open.append(name)
        try:
            return work()
        finally:
            self.mark()
            self._open.pop()
            if name == LAST:
                print(json.dumps(self.stages), flush=True)
                os._exit(0)


def cpu_time() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def probe(source: str, target: str, out: str) -> None:
    """Run the command in this process, time its stages, and exit after the first step."""
    clock = Clock()
    sys.meta_path.insert(0, TimedImports(clock))
    sys.argv = ["regard", "train", "--source", source, "--target", target, "--out", out]
    from regard.cli import main as run_command

    run_command()


class TimedImports:
    """Times the import of every module, and the functions of STAGES in it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the module's spec, with a loader that takes the time."""
        finders = [finder for finder in sys.meta_path if finder is not self]
        spec = next((spec for finder in finders if (spec := finder.find_spec(name, path, target))), None)
        loader: Any = None if spec is None else spec.loader
        if hasattr(loader, "exec_module"):
            loader.exec_module = partial(self._execute, loader.exec_module)
        return spec

    def _execute(self, execute: Callable[[Any], None], module: Any) -> None:
        stage = "import torch" if module.__name__.startswith("torch") else "other imports"
        self._clock.time(stage, partial(execute, module))
        for function, stage in STAGES.items():
            if function.startswith(f"{module.__name__}:"):
                self._wrap(module, function.partition(":")[2].split("."), stage)

    def _wrap(self, owner: Any, names: list[str], stage: str) -> None:
        for name in names[:-1]:
            owner = getattr(owner, name, None)
        if (function := getattr(owner, names[-1], None)) is None:
            return

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            return self._clock.time(stage, partial(function, *args, **kwargs))

        setattr(owner, names[-1], timed)


if __name__ == "__main__":
    main()
