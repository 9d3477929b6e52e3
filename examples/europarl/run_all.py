"""Compare Regard, Hugging Face and Marian on Europarl with equal CPU time; start it again to continue.

    python examples/europarl/run_all.py --data path/to/europarl --runs europarl --marian path/to/pymarian
    python examples/europarl/run_all.py ... --minutes 1 --trial-minutes 0.3      # to try the script

Every model has the same corpus, tokens, layers and width, one thread and `--minutes` of CPU time for its training:

    regard           the recipe of run.py
    hugging-face     Seq2SeqTrainer; its learning rate is the best of three by validation chrF (`--trial-minutes` each)
    regard-adam      Regard with Adam, sinusoidal positions, that learning rate and no average of checkpoints
    marian           Marian; its learning rate is chosen in the same way

Regard translates the test set with each of them, once, with a beam of 5. The translations go to `hypotheses/`;
`score.py` scores and compares them. SIGTERM or Ctrl-C saves and exits with code 75.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from run import RECIPES, make_command, make_schedule  # type: ignore[import-not-found]

HERE = Path(__file__).parent.resolve()
RATES = (0.0005, 0.001, 0.002)
MUON_RATE = 0.003
TRIAL_UPDATES = (50, 150)  # their difference gives the CPU-seconds per update
STOPPED = 75  # exit code of `regard train` after a requested stop


def main() -> None:
    """Train the four models, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of {train,valid,test}.{en,de}.gz")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs, outside the repository")
    parser.add_argument("--marian", default="pymarian", help="the program pymarian, in an environment of its own")
    parser.add_argument("--minutes", type=float, default=120, help="CPU-minutes of each training")
    parser.add_argument("--trial-minutes", type=float, default=15, help="CPU-minutes for each learning rate")
    parser.add_argument("--nice", type=int, default=15, help="lower the priority of all commands by this much")
    options = parser.parse_args()
    os.nice(options.nice)
    os.environ["OMP_NUM_THREADS"] = "1"
    comparison = Comparison(options.data.resolve(), options.runs.resolve(), options.marian, options.minutes)
    comparison.train_regard("regard", "muon", MUON_RATE)
    rate = comparison.choose_rate("hugging_face.py", "hugging-face", options.trial_minutes)
    comparison.train_peer("hugging_face.py", "hugging-face", rate, options.minutes)
    comparison.train_regard("regard-adam", "adam", rate)
    rate = comparison.choose_rate("marian.py", "marian", options.trial_minutes)
    comparison.train_peer("marian.py", "marian", rate, options.minutes)
    print(f"finished: python examples/europarl/score.py --data {options.data} --hypotheses {options.runs}/hypotheses")


class Comparison:
    """The folders and commands of the comparison; finished steps are skipped."""

    def __init__(self, data: Path, runs: Path, marian: str, minutes: float) -> None:
        self.data, self.runs, self.marian, self.minutes = data, runs, marian, minutes
        self._child: subprocess.Popen[bytes] | None = None
        self._stop_requested = threading.Event()
        (runs / "hypotheses").mkdir(parents=True, exist_ok=True)
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._stop)

    def train_regard(self, name: str, recipe: str, rate: float) -> None:
        """Train one of Regard's models and translate with it."""
        folder = self.runs / name
        if (folder / "RESULTS.json").is_file():
            return
        updates = self._plan_updates(folder, recipe, rate)
        script = [str(HERE / "run.py"), "--data", str(self.data), "--out", str(folder), "--threads", "1"]
        settings = ["--recipe", recipe, "--rate", str(rate), "--updates", str(updates)]
        self._run(name, [sys.executable, *script, *settings])
        self._keep(name)

    def choose_rate(self, script: str, name: str, minutes: float) -> float:
        """Return the learning rate with the best chrF on validation after a short training."""
        scores = {}
        for rate in RATES:
            self.train_peer(script, f"{name}-{rate}", rate, minutes, "--trial")
            results = json.loads((self.runs / f"{name}-{rate}" / "RESULTS.json").read_text(encoding="utf-8"))
            scores[rate] = results["valid"]["chrf"]["score"]
        (self.runs / f"{name}-rates.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
        return max(scores, key=lambda rate: scores[rate])

    def train_peer(self, script: str, name: str, rate: float, minutes: float, *options: str) -> None:
        """Train a model with another toolkit and translate with it."""
        folder = self.runs / name
        if not (folder / "RESULTS.json").is_file():
            arguments = ["--run", str(self.runs / "regard" / "run"), "--data", str(self.data), "--out", str(folder)]
            arguments += ["--rate", str(rate), "--minutes", str(minutes), *options]
            arguments += ["--marian", self.marian] if script == "marian.py" else []
            self._run(name, [sys.executable, str(HERE / script), *arguments])
        if "--trial" not in options:
            self._keep(name)

    def _plan_updates(self, folder: Path, recipe: str, rate: float) -> int:
        """Return how many updates fit into the CPU time; the first call measures it, others read the answer."""
        path = folder / "updates.json"
        if not path.is_file():
            used = []
            for updates in TRIAL_UPDATES:
                trial = folder / f"trial-{updates}"
                shutil.rmtree(trial, ignore_errors=True)  # of a trial that was stopped
                settings = RECIPES[recipe] | {"train.schedule": make_schedule(rate)}
                before = _child_seconds()
                self._run(folder.name, make_command(self.data, trial, settings, updates, 1))
                used.append(_child_seconds() - before)
                shutil.rmtree(trial)
            per_update = (used[1] - used[0]) / (TRIAL_UPDATES[1] - TRIAL_UPDATES[0])
            path.write_text(json.dumps(int(60 * self.minutes / per_update)) + "\n", encoding="utf-8")
        return int(json.loads(path.read_text(encoding="utf-8")))

    def _keep(self, name: str) -> None:
        shutil.copyfile(self.runs / name / "test.de", self.runs / "hypotheses" / f"{name}.de")

    def _run(self, name: str, command: list[str]) -> None:
        """Run a command with its output in `logs/`; add its CPU time to the file of its name."""
        if self._stop_requested.is_set():
            sys.exit(STOPPED)
        log, clock = (self.runs / "logs" / f"{name}{suffix}" for suffix in (".txt", "-seconds.json"))
        log.parent.mkdir(exist_ok=True)
        earlier_seconds = json.loads(clock.read_text(encoding="utf-8")) if clock.is_file() else 0.0
        before = _child_seconds()
        print(f"{name}: {' '.join(command)}", flush=True)
        with log.open("ab") as output:
            self._child = subprocess.Popen(  # noqa: S603 - our own command
                command, stdout=output, stderr=subprocess.STDOUT, process_group=0
            )
            code = self._child.wait()
        clock.write_text(json.dumps(earlier_seconds + _child_seconds() - before), encoding="utf-8")
        if code:
            print(f"{name}: exit code {code}, see {log}", file=sys.stderr, flush=True)
            sys.exit(STOPPED if self._stop_requested.is_set() else 1)

    def _stop(self, *_: object) -> None:
        self._stop_requested.set()
        if self._child is not None:
            self._child.terminate()  # scripts pass it on to the programs that they start


def _child_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
