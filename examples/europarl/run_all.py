"""Compare Regard, Hugging Face and Marian on Europarl with equal CPU time; start it again to continue.

    python examples/europarl/run_all.py --data path/to/europarl --runs europarl --marian path/to/pymarian
    python examples/europarl/run_all.py ... --minutes 1 --trial-minutes 0.3      # to try the script

Every model has the same corpus, tokens, layers and width, one thread and `--minutes` of CPU time for its training:

    regard           the recipe of run.py
    hugging-face     Seq2SeqTrainer
    regard-adam      Regard with Adam, sinusoidal positions, the rate of hugging-face and no average of checkpoints
    marian           Marian

The learning rate of each is the best of three (`--trial-minutes` each) by the loss on 500 validation pairs. Regard
translates the test set with each of them, once, with a beam of 5. The translations go to `hypotheses/`; `score.py`
scores and compares them. SIGTERM or Ctrl-C saves and exits with code 75.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from run import PRESET, RECIPES, make_command, make_schedule  # type: ignore[import-not-found]

HERE = Path(__file__).parent.resolve()
RATES = (0.0005, 0.001, 0.002)
MUON_RATES = (0.003, 0.006, 0.012)
TRIAL_STEPS = (50, 150)  # their difference gives the CPU-seconds per step
STOPPED = 75  # exit code of `regard train` after a requested stop
Train = Callable[[str, float, float], None]  # name, learning rate, CPU-minutes


def main() -> None:
    """Train the four models, or several of them side by side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of {train,valid,test}.{en,de}.gz")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs, outside the repository")
    parser.add_argument("--marian", default="pymarian", help="the program pymarian, in an environment of its own")
    parser.add_argument("--minutes", type=float, default=120, help="CPU-minutes of each training")
    parser.add_argument("--trial-minutes", type=float, default=15, help="CPU-minutes for each learning rate")
    parser.add_argument("--preset", default=PRESET, help="size of all models")
    parser.add_argument("--step-tokens", type=int, default=4096, help="tokens of each step, for all models")
    parser.add_argument("--jobs", type=int, default=1, help="models that are trained side by side")
    parser.add_argument("--nice", type=int, default=15, help="lower the priority of all commands by this much")
    options = parser.parse_args()
    os.nice(options.nice)
    os.environ["OMP_NUM_THREADS"] = "1"
    comparison = Comparison(
        options.data.resolve(), options.runs.resolve(), options.marian, options.preset, options.step_tokens
    )
    comparison.prepare()

    def train_peer(name: str, train: Train) -> float:
        rate = comparison.choose_rate(name, train, RATES, options.trial_minutes)
        train(name, rate, options.minutes)
        return rate

    def train_regard() -> None:
        rate = comparison.choose_rate("regard", comparison.train_muon, MUON_RATES, options.trial_minutes)
        comparison.train_muon("regard", rate, options.minutes)

    def train_hugging_face_and_adam() -> None:
        rate = train_peer("hugging-face", comparison.train_hugging_face)
        comparison.train_adam("regard-adam", rate, options.minutes)

    with ThreadPoolExecutor(options.jobs) as pool:
        steps = [train_regard, train_hugging_face_and_adam, lambda: train_peer("marian", comparison.train_marian)]
        for finished in [pool.submit(step) for step in steps]:
            finished.result()
    print(f"finished: python examples/europarl/score.py --data {options.data} --hypotheses {options.runs}/hypotheses")


class StoppedError(Exception):
    """A stop was requested, or a command failed."""


class Comparison:
    """The folders and commands of the comparison; finished steps are skipped."""

    def __init__(self, data: Path, runs: Path, marian: str, preset: str, step_tokens: int) -> None:
        self.data, self.runs, self.marian, self.preset = data, runs, marian, preset
        # Validation costs CPU time that no training is charged for: a hundred translations are enough to follow it.
        self._settings = {"train.step_tokens": str(step_tokens), "validation.sentences": "100"}
        self._children: set[subprocess.Popen[bytes]] = set()
        self._stop_requested = threading.Event()
        (runs / "hypotheses").mkdir(parents=True, exist_ok=True)
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._stop)

    def prepare(self) -> None:
        """Learn the tokens by a run of one step, which the other toolkits read, and tokenize the corpus with them."""
        run = self.runs / "corpus"
        if not (run / "best").is_dir():
            shutil.rmtree(run, ignore_errors=True)
            self._run("corpus", make_command(self.data, run, RECIPES["muon"] | self._settings, 1, 1, self.preset))
        if not (self.runs / "shards" / "train" / "corpus.json").is_file():
            arguments = [str(run / "run.toml"), str(self.runs / "shards"), "--tokenizer", str(run / "tokenizer")]
            self._run("corpus", [sys.executable, "-m", "regard", "prepare", *arguments, "--workers", "1"])
        self._settings["data.prepared"] = f"'{self.runs / 'shards'}'"

    def choose_rate(self, name: str, train: Train, rates: tuple[float, ...], minutes: float) -> float:
        """Return the learning rate with the lowest validation loss after a short training."""
        losses = {}
        for rate in rates:
            trial = f"{name}-trial-{rate}"
            train(trial, rate, minutes)
            losses[rate] = json.loads((self.runs / trial / "RESULTS.json").read_text(encoding="utf-8"))["loss"]
        (self.runs / f"{name}-rates.json").write_text(json.dumps(losses, indent=1) + "\n", encoding="utf-8")
        return min(losses, key=lambda rate: losses[rate])

    def train_muon(self, name: str, rate: float, minutes: float) -> None:
        """Train Regard's recipe."""
        self._train_regard(name, "muon", rate, minutes)

    def train_adam(self, name: str, rate: float, minutes: float) -> None:
        """Train Regard with what the other toolkits offer."""
        self._train_regard(name, "adam", rate, minutes)

    def train_hugging_face(self, name: str, rate: float, minutes: float) -> None:
        """Train Hugging Face's `Seq2SeqTrainer`."""
        self._train_peer("hugging_face.py", name, rate, minutes)

    def train_marian(self, name: str, rate: float, minutes: float) -> None:
        """Train Marian."""
        self._train_peer("marian.py", name, rate, minutes, "--marian", self.marian)

    def _train_regard(self, name: str, recipe: str, rate: float, minutes: float) -> None:
        steps = 0 if self._is_finished(name) else self._plan_steps(recipe, rate, minutes)
        arguments = ["--threads", "1", "--recipe", recipe, "--rate", str(rate), "--steps", str(steps)]
        arguments += ["--preset", self.preset]
        for setting, value in self._settings.items():
            arguments += ["--set", f"{setting}={value}"]
        self._train("run.py", name, arguments)

    def _train_peer(self, script: str, name: str, rate: float, minutes: float, *options: str) -> None:
        """Train a model of another toolkit, whose first training measures the speed of all."""
        shared_speed, speed = self.runs / f"{Path(script).stem}-speed.json", self.runs / name / "speed.json"
        if shared_speed.is_file() and not speed.is_file():
            speed.parent.mkdir(exist_ok=True)
            shutil.copyfile(shared_speed, speed)
        corpus = ["--run", str(self.runs / "corpus")]
        self._train(script, name, [*corpus, "--rate", str(rate), "--minutes", str(minutes), *options])
        if speed.is_file():
            shutil.copyfile(speed, shared_speed)

    def _is_finished(self, name: str) -> bool:
        return (self.runs / name / "RESULTS.json").is_file()

    def _train(self, script: str, name: str, options: list[str]) -> None:
        """Train a model and evaluate it: a trial by its validation loss, others by their translations."""
        if not self._is_finished(name):
            options = [*options, "--trial"] if "-trial-" in name else options
            files = ["--data", str(self.data), "--out", str(self.runs / name)]
            self._run(name, [sys.executable, str(HERE / script), *files, *options])
        if "-trial-" not in name:
            shutil.copyfile(self.runs / name / "test.de", self.runs / "hypotheses" / f"{name}.de")

    def _plan_steps(self, recipe: str, rate: float, minutes: float) -> int:
        """Return how many steps fit into the CPU time; the first call measures their time."""
        path = self.runs / f"{recipe}-seconds-per-update.json"
        if not path.is_file():
            used = []
            for steps in TRIAL_STEPS:
                run = self.runs / f"{recipe}-{steps}-steps"
                shutil.rmtree(run, ignore_errors=True)  # of a trial that was stopped
                settings = RECIPES[recipe] | self._settings | {"train.schedule": make_schedule(rate, steps)}
                used.append(self._run(run.name, make_command(self.data, run, settings, steps, 1, self.preset)))
                shutil.rmtree(run)
            seconds = (used[1] - used[0]) / (TRIAL_STEPS[1] - TRIAL_STEPS[0])
            path.write_text(json.dumps(seconds) + "\n", encoding="utf-8")
        return int(60 * minutes / json.loads(path.read_text(encoding="utf-8")))

    def _run(self, name: str, command: list[str]) -> float:
        """Run a command with its output in `logs/`; return its CPU-seconds, and add them to the file of its name."""
        if self._stop_requested.is_set():
            raise StoppedError
        log, clock = (self.runs / "logs" / f"{name}{suffix}" for suffix in (".txt", "-seconds.json"))
        log.parent.mkdir(exist_ok=True)
        earlier_seconds = json.loads(clock.read_text(encoding="utf-8")) if clock.is_file() else 0.0
        print(f"{name}: {' '.join(command)}", flush=True)
        with log.open("ab") as output:
            child = subprocess.Popen(  # noqa: S603 - our own command
                command, stdout=output, stderr=subprocess.STDOUT, process_group=0
            )
            self._children.add(child)
            if self._stop_requested.is_set():  # the signal came while the command started
                child.terminate()
            _, status, usage = os.wait4(child.pid, 0)  # with the usage of all processes that it waited for
            self._children.discard(child)
            child.returncode = code = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
        clock.write_text(json.dumps(earlier_seconds + seconds), encoding="utf-8")
        if code:
            print(f"{name}: exit code {code}, see {log}", file=sys.stderr, flush=True)
            raise StoppedError
        return seconds

    def _stop(self, *_: object) -> None:
        self._stop_requested.set()
        for child in list(self._children):
            child.terminate()  # scripts pass it on to the programs that they start


if __name__ == "__main__":
    try:
        main()
    except StoppedError:
        sys.exit(STOPPED)
