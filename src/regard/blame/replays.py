"""Replays: the run of a model, repeated without some training samples. Each is kept in the run folder.

RUN/blame/KEY/       the model of a replay after its last step, with replay.json (the removed lines, validation scores)
RUN/blame/KEY.run/   an unfinished replay, which is resumed

The key is a hash of the removed lines, so questions share replays, and a repeated command continues where it stopped.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.base.errors import RegardError
from regard.base.files import read_json
from regard.blame.question import WordQuestion, compute_log_odds
from regard.config.codec import RUN_FILES
from regard.data.shards.shard import Shards
from regard.lora import merge_weights
from regard.store.model_folder import read_model, write_model
from regard.store.run_folder import RunFolder
from regard.store.weights import load_into
from regard.tasks.load import AnyPipeline, load
from regard.training.checkpoint.folder import Checkpoints
from regard.training.events import Finished, Listener
from regard.training.run import is_finished, resume
from regard.training.without import Removed, group_lines, merge_removed, write_replay

REPLAY_FILE = "replay.json"
RANDOM_REPLAYS = 5
RANDOM_SAMPLES = 10  # removed by each random replay; fewer if that is more than a hundredth of the corpus


@dataclass(frozen=True)
class Replay:
    """A model without some samples, or the original one."""

    pipeline: AnyPipeline
    validation_loss: float | None

    def compute_log_odds(self, questions: Sequence[WordQuestion]) -> list[float]:
        """Return the log-odds of each question's word."""
        return compute_log_odds(self.pipeline.make_scorer(1.0), questions)


class Replays:
    """The replays of a run.

    Args:
        run: The run folder; it must have its last checkpoint.
        listeners: Called with the training events of new replays.
        count: Number of random replays, 2 to 5.
    """

    def __init__(self, run: Path, listeners: Sequence[Listener] = (), count: int = RANDOM_REPLAYS) -> None:
        self.run, self._folder, self._listeners, self.count = run, run / "blame", listeners, count

    def read_original(self) -> Replay:
        """Return the original model after the last step; `best` may be of another step."""
        return self._read_run(RunFolder(self.run))

    def train_without(self, removed: Removed) -> Replay:
        """Repeat the run without these lines, or return an earlier replay.

        Raises:
            RegardError: If the run cannot be repeated exactly, or training stopped.
        """
        path = self._find(removed)
        working = RunFolder(path.with_name(f"{path.name}.run"))
        if not path.is_dir():
            self._train(path, working, removed)
        if working.path.is_dir():  # also after a kill in between
            shutil.rmtree(working.path)
        return Replay(load(path), read_json(path / REPLAY_FILE)["validation_loss"])

    def pick_random(self, shards: Shards) -> list[Removed]:
        """Return the lines that each random replay removes: the same for all questions."""
        size = max(1, min(RANDOM_SAMPLES, len(shards) // 100))
        picks = (np.random.default_rng(seed).choice(len(shards), size, replace=False) for seed in range(self.count))
        return [group_lines(map(shards.locate, pick.tolist())) for pick in picks]

    def count_missing(self, removals: Sequence[Removed]) -> int:
        """Return how many of these replays have not been trained."""
        return sum(not self._find(removed).is_dir() for removed in removals)

    def estimate_seconds(self) -> float | None:
        """Return the duration of a replay: that of the original run's steps, if it recorded any."""
        run = RunFolder(self.run)
        lines = run.timing.read_text(encoding="utf-8").splitlines() if run.timing.is_file() else []
        steps = [record["seconds"][0] for record in map(json.loads, lines) if "slowest_rank" in record]  # of rank 0
        return sum(steps) / len(steps) * RUN_FILES.load(run.run).train.steps if steps else None

    def _find(self, removed: Removed) -> Path:
        content = json.dumps(merge_removed(removed), sort_keys=True)
        return self._folder / hashlib.sha256(content.encode()).hexdigest()[:16]

    def _train(self, path: Path, working: RunFolder, removed: Removed) -> None:
        if not working.run.is_file():
            run = write_replay(self.run, working.path, removed)
            RUN_FILES.save(RUN_FILES.change(run, {"train.film_points": 0}), working.run)  # a film only observes
        if not (working.finished.is_file() and is_finished(working.path)):
            finished = resume(working.path, listeners=self._listeners)
            _check_finished(finished)
        replay, stored = self._read_run(working), read_model(working.best)
        content = {"removed": removed, "validation_loss": replay.validation_loss}
        files = {REPLAY_FILE: json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"}
        weights = dict(replay.pipeline.model.named_parameters())
        write_model(path, stored.settings, stored.tokenizers, weights, "# A replay of `regard blame`\n", files=files)

    def _read_run(self, folder: RunFolder) -> Replay:
        """Read the model of a run after its last step."""
        newest = Checkpoints(folder.checkpoints, lambda _: None).load_newest()
        if newest is None:
            hint = "Blame compares models after the last step, so the run needs its last checkpoint."
            raise RegardError("The run has no checkpoint.", location=str(folder.path), hint=hint)
        step, checkpoint = newest
        run, pipeline = RUN_FILES.load(folder.run), load(folder.best)
        weights = checkpoint.ema or checkpoint.weights
        if run.finetune is not None and run.finetune.lora is not None:
            weights = merge_weights(weights, run.finetune.lora.scale)
        load_into(pipeline.model, weights, location=str(folder.checkpoints))
        return Replay(pipeline, _read_validation_loss(folder.metrics, step))


def _check_finished(finished: Finished) -> None:
    if finished.reason not in ("finished", "no improvement"):
        message = f"The replay stopped after step {finished.step:,}: {finished.reason}."
        raise RegardError(message, location=str(finished.folder), hint="Repeat the command to continue.")


def _read_validation_loss(metrics: Path, step: int) -> float | None:
    """Return the validation loss at the last step that has one."""
    lines = (json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines())
    losses = [line["validation"].get("loss") for line in lines if "validation" in line and line["step"] <= step]
    return losses[-1] if losses else None


Announce = Callable[[int, float | None], None]
"""Called before the first replay with the largest number of new replays and the seconds of each, if known."""
