"""Train and test every model of the Multi30k example; start it again to continue whatever is unfinished.

    python examples/multi30k/run_all.py --data path/to/multi30k/task1 --runs multi30k
    python examples/multi30k/run_all.py --data path/to/multi30k/task1 --runs multi30k --list   # print the commands only

`--data` has the tokenized files in `tok/` and the raw ones in `raw/` or beside it, with or without .gz. They are copied
to `tok/` and `raw/` in the folder of the runs, under the names that the commands use.

Every step is one `regard` command: three models of recipe.toml, then three students of the same recipe with these three
as teachers, then one model of the raw files. Each model translates the validation set with `best` and `average` and
several length penalties; the best of these by BLEU translates each test set once. Ctrl-C or SIGTERM saves and exits
with code 75. `score.py` scores the translations.
"""

import argparse
import gzip
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import FrameType

from sacrebleu.metrics.bleu import BLEU

from regard.training.run import is_finished

HERE = Path(__file__).parent.resolve()
LANGUAGES = ("en", "de")
TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
LENGTH_PENALTIES = (1.0, 1.2, 1.4)
BEAM = 5
TEACHERS = ("seed1", "seed2", "seed3")
STUDENT_STEPS = 1600
STOPPED = 75  # exit code of `regard train` after a requested stop
QUICK = {  # small models that learn little: to try the script
    "tokenizer.vocabulary": 400,
    "model.d_model": 32,
    "model.encoder.layers": 1,
    "model.decoder.layers": 1,
    "data.batch_tokens": 512,
    "train.step_tokens": 1024,
    "train.steps": 100,
    "train.schedule.lr": 0.01,
    "train.schedule.warmup": 10,
    "train.precision": "float32",
    "train.average": 2,
    "train.save_every": 50,
    "validation.every_steps": 50,
    "validation.sentences": 20,
}
QUICK_LINES = {"train": 200}  # other files: 20


@dataclass(frozen=True)
class Model:
    """One model of the example: its run folder and how it is trained."""

    name: str
    seed: int
    data: str = "tok"
    teachers: tuple[str, ...] = ()

    def train_command(self, *, is_quick: bool) -> list[str]:
        """Return the command that starts its training, in the folder of its data."""
        options = ["--seed", str(self.seed), "--out", f"../{self.name}"]
        for teacher in self.teachers:
            options += ["--teacher", f"../{teacher}"]
        options += ["--steps", str(STUDENT_STEPS)] if self.teachers and not is_quick else []
        changes: dict[str, object] = dict(QUICK) if is_quick else {}
        if self.teachers:  # later students reuse the translations
            changes |= {"distillation.beam_size": 1, "distillation.cache": "../translations"}
        for name, value in changes.items():
            options += ["--set", f"{name}={value}"]
        return ["regard", "train", str(HERE / "recipe.toml"), *options]

    def translate_command(self, folder: str, length_penalty: float, source: str, output: str) -> list[str]:
        """Return the command that translates a file."""
        search = ["--beam", str(BEAM), "--length-penalty", str(length_penalty)]
        return ["regard", "translate", f"../{self.name}/{folder}", "--input", source, *search, "--output", output]


GROUPS = (  # the models of a group may be trained side by side
    tuple(Model(name, seed) for seed, name in enumerate(TEACHERS, 1)),
    tuple(Model(f"student{seed}", seed, teachers=TEACHERS) for seed in (1, 2, 3)),
    (Model("raw-seed1", 1, data="raw"),),
)


def main() -> None:
    """Copy the data and train the models, teachers before students; test each model after its training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpus, with tok/ and raw/")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs, outside the repository")
    parser.add_argument("--jobs", type=int, default=1, help="models that are trained side by side, one thread each")
    parser.add_argument("--nice", type=int, default=15, help="lower the priority of all commands by this much")
    parser.add_argument("--quick", action="store_true", help="a few sentences and steps, to try the script")
    parser.add_argument("--list", action="store_true", help="print the commands of the training and exit")
    options = parser.parse_args()
    if options.list:
        for model in chain.from_iterable(GROUPS):
            print(f"(cd {model.data}; {shlex.join(model.train_command(is_quick=options.quick))})")
        return
    os.nice(options.nice)
    runner = Runner(options.runs.resolve(), is_quick=options.quick)
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, runner.stop)
    for name in ("tok", "raw"):
        copy_data(options.data, options.runs / name, is_quick=options.quick)
    for models in GROUPS:
        with ThreadPoolExecutor(options.jobs) as pool:
            for finished in [pool.submit(runner.finish, model) for model in models]:
                finished.result()
    print(f"finished: python examples/multi30k/score.py --runs {options.runs}")


class StoppedError(Exception):
    """A stop was requested, or a command failed."""


class Runner:
    """Runs commands, each with its output in `logs/`, and stops them on a signal."""

    def __init__(self, runs: Path, *, is_quick: bool) -> None:
        self.runs, self.is_quick = runs, is_quick
        self._children: set[subprocess.Popen[bytes]] = set()
        self._is_stopped = False

    def stop(self, _signum: int, _frame: FrameType | None) -> None:
        """Stop all commands: `regard train` saves first."""
        self._is_stopped = True
        for child in list(self._children):
            child.terminate()

    def finish(self, model: Model) -> None:
        """Train a model to its end and translate with it; finished steps are skipped."""
        self.train(model)
        penalties = LENGTH_PENALTIES[:1] if self.is_quick else LENGTH_PENALTIES
        outputs = {}
        for folder in ("best", "average"):
            for penalty in penalties if (self.runs / model.name / folder).is_dir() else ():
                outputs[folder, penalty] = self.translate(model, folder, penalty, "val", f"val-{folder}-{penalty}")
        references = read_lines(self.runs / model.data / "val.de")
        bleu = BLEU(tokenize="13a" if model.data == "raw" else "none", force=True)
        scores = {choice: bleu.corpus_score(lines, [references]).score for choice, lines in outputs.items()}
        folder, penalty = max(scores, key=lambda choice: scores[choice])
        for test in TESTS:
            self.translate(model, folder, penalty, test, test)
        selection = {"data": model.data, "model": folder, "length_penalty": penalty, "beam": BEAM}
        selection["validation"] = {f"{name} {value}": round(score, 4) for (name, value), score in scores.items()}
        path = self.runs / "hypotheses" / model.name / "selection.json"
        path.write_text(json.dumps(selection, indent=1) + "\n", encoding="utf-8")

    def train(self, model: Model) -> None:
        """Start or resume a run, unless it is finished."""
        run = self.runs / model.name
        if (run / "run.toml").is_file():
            if not is_finished(run):
                self.run(model, ["regard", "train", "--resume", f"../{model.name}"])
        else:
            self.run(model, model.train_command(is_quick=self.is_quick))

    def translate(self, model: Model, folder: str, penalty: float, split: str, name: str) -> list[str]:
        """Translate a file, unless its translation exists, and return the lines."""
        path = self.runs / "hypotheses" / model.name / f"{name}.de"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".part")
            self.run(model, model.translate_command(folder, penalty, f"{split}.en", str(unfinished)))
            unfinished.rename(path)
        return read_lines(path)

    def run(self, model: Model, command: Sequence[str]) -> None:
        """Run a command in the folder of the model's data."""
        if self._is_stopped:
            raise StoppedError
        print(f"{model.name}: {shlex.join(command)}", flush=True)
        log = self.runs / "logs" / f"{model.name}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            child = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", *command],
                cwd=self.runs / model.data,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches this script alone, which passes it on once
            )
            self._children.add(child)
            if self._is_stopped:  # the signal came while the command started
                child.terminate()
            code = child.wait()
            self._children.discard(child)
        if code:
            if not self._is_stopped:
                print(f"{model.name}: exit code {code}, see {log}", file=sys.stderr, flush=True)
            raise StoppedError(code)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a file; only line feeds separate them."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def copy_data(data: Path, folder: Path, *, is_quick: bool) -> None:
    """Copy the files of one version of the corpus, decompressed and under simple names."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "val", *TESTS):
        for language in LANGUAGES:
            content = read_file(data, folder.name, split, language)
            if is_quick:
                content = b"".join(content.splitlines(keepends=True)[: QUICK_LINES.get(split, 20)])
            path = folder / f"{split}.{language}"
            if not path.is_file() or path.read_bytes() != content:  # a resumed run needs unchanged files
                path.write_bytes(content)


def read_file(data: Path, version: str, split: str, language: str) -> bytes:
    """Read a file of the tokenized or the raw version, with or without .gz."""
    name = f"{split}{'.lc.norm.tok' if version == 'tok' else ''}.{language}"
    for path in (folder / f"{name}{suffix}" for folder in (data / version, data) for suffix in ("", ".gz")):
        if path.is_file():
            return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    sys.exit(f"There is no {name} or {name}.gz in {data / version} or {data}.")


if __name__ == "__main__":
    try:
        main()
    except StoppedError:
        sys.exit(STOPPED)
