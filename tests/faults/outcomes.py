"""R8: problems around a run, each with one defined outcome: refused, repaired or reported."""

import json
import math
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch

from regard.cli.train import EXIT_CODES
from regard.config.codec import RUN_FILES
from regard.store.model_folder import read_model
from regard.training.events import Event, StepFinished
from regard.training.run import fit, resume
from tests.faults.frozen import make_scratch_folder
from tests.faults.verdict import Verdict
from tests.faults.world import Violations, World
from tests.training.factories import SpikyObjective
from tests.training.runs import compute_fingerprints, read_metrics

DAY = 86_400.0
NAN_IN_EVERY_BATCH = dict.fromkeys(range(1, 1000), math.nan)
Case = Callable[[World], Violations]


def prove(quick: bool = False) -> Verdict:
    """Every case once; or, quick, some of each kind."""
    verdict = Verdict("R8", "cases of NaN, changed settings or data, clocks and shared folders had another outcome")
    with make_scratch_folder() as folder:
        world = World(folder)
        for name in QUICK if quick else CASES:
            world.copy()
            try:
                broken = CASES[name](world)
            except Exception:
                broken = [traceback.format_exc(limit=-3)]
            verdict.add_fault(name, broken)
    return verdict


@contextmanager
def inject_spikes(faults: Mapping[int, float], gradients: Mapping[int, float] = {}) -> Iterator[None]:
    """Batches (counted from 1) whose loss or gradient is multiplied by NaN or infinity."""
    SpikyObjective.batch_count, SpikyObjective.faults, SpikyObjective.batch_factors, SpikyObjective.gradient_factors = (
        0,
        dict(faults),
        {},
        dict(gradients),
    )
    with mock.patch("regard.training.trainer.Objective", SpikyObjective):
        yield


def check_skipped(world: World, loss: Mapping[int, float], gradient: Mapping[int, float] = {}) -> Violations:
    """The step is skipped, reported and recorded; the weights stay finite; the run makes all its steps."""
    with inject_spikes(loss, gradient):
        spikes, end = world.run_with_spikes({})
    lines = [line for line in read_metrics(world.copy_folder) if "spike" in line]
    weights = read_model(world.copy_folder).model.state_dict().values()
    return list_failures({
        "one spike is reported and recorded": len(spikes) == len(lines) == 1 and lines[0]["action"] == "skipped",
        "the run is finished": (end.reason, end.step) == ("finished", 12),
        "all weights are finite": all(bool(torch.isfinite(tensor).all()) for tensor in weights),
    })  # fmt: skip


def check_stopped(world: World) -> Violations:
    with inject_spikes({9: math.nan}):  # step 5
        spikes, end = world.run_with_spikes({"train.spikes": {"kind": "stop"}})
    checkpoints = sorted(path.name for path in (world.copy_folder / "checkpoints").iterdir())
    return list_failures({
        "it stops before the spike, with code 76": (end.reason, end.step, EXIT_CODES[end.reason]) == ("spike", 4, 76),
        "the spike is reported": len(spikes) == 1 and spikes[0].action.startswith("stopped"),
        "what was learned is saved": checkpoints[-1] == "step-00000004",
    })  # fmt: skip


def check_recovered(world: World) -> Violations:
    with inject_spikes(dict.fromkeys(range(13, 29), math.nan)):  # step 7: eight times in a row
        spikes, end = world.run_with_spikes({"train.spikes.window": 8})
    return list_failures({
        "it goes back and reports it": len(spikes) == 9 and spikes[-1].action.startswith("back to step 4 with"),
        "it is finished then": (end.reason, end.step) == ("finished", 12),
    })  # fmt: skip


def check_gives_up(world: World) -> Violations:
    with inject_spikes(NAN_IN_EVERY_BATCH):
        spikes, end = world.run_with_spikes({})
    return list_failures({"it gives up after 5 x 8": (end.reason, end.step, len(spikes)) == ("divergence", 0, 45)})


def check_accepted(world: World) -> Violations:
    resume(world.copy_folder, changes={"train.max_grad_norm": 0.25}, force=True)
    state = json.loads((world.copy_folder / "checkpoints" / "step-00000012" / "state.json").read_text())
    return list_failures({
        "run.toml has it": RUN_FILES.load(world.copy_folder / "run.toml").train.max_grad_norm == 0.25,
        "the checkpoint has it": state["run"]["train"]["max_grad_norm"] == 0.25,
    })  # fmt: skip


def check_killed_after_acceptance(world: World, name: str) -> Violations:
    """Kill a run just before it writes a file after changed settings were accepted; it resumes without a question."""
    changes = {"train.max_grad_norm": 0.25}
    resume(world.copy_folder, changes=changes, force=True)
    changed = compute_fingerprints(world.copy_folder)
    world.copy()
    child = os.fork()
    if child == 0:
        replace = Path.replace

        def kill(source: Path, target: Path) -> Path:
            if target.name == name:
                os.kill(os.getpid(), signal.SIGKILL)
            return replace(source, target)

        try:
            with mock.patch.object(Path, "replace", kill):
                resume(world.copy_folder, changes=changes, force=True)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    resume(world.copy_folder)
    is_recorded = name == "manifest.json"  # later than run.toml
    return list_failures({
        "it was killed there": os.waitstatus_to_exitcode(status) == -signal.SIGKILL,
        "all files have the old or all the new settings": compute_fingerprints(world.copy_folder)
        == (changed if is_recorded else world.expected),
    })  # fmt: skip


def check_edited_after_acceptance(world: World) -> Violations:
    """Acceptance is for the settings that were shown, not for later edits."""
    resume(world.copy_folder, changes={"train.max_grad_norm": 0.25}, force=True, pause_at=9)
    return check_edited(
        world, "max_grad_norm = 0.25", "max_grad_norm = 0.75", "train.max_grad_norm: was 0.25, is 0.75 | --force"
    )


def check_edited(world: World, old: str, new: str, words: str) -> Violations:
    """The run file was edited by hand."""
    path = world.copy_folder / "run.toml"
    text = path.read_text()
    if old not in text:
        return [f"run.toml has no {old!r}"]
    path.write_text(text.replace(old, new))
    return world.check_resume_refused(words)


def change_file(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the content of a file."""
    path.write_bytes(change(path.read_bytes()))


def flip_bit(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


def check_corpus_changed(world: World, change: Callable[[bytes], bytes]) -> Violations:
    change_file(world.corpus / "all.de", change)
    return world.check_resume_refused("all.de | --force")


def check_corpus_missing(world: World) -> Violations:
    (world.corpus / "all.en").unlink()
    return world.check_resume_refused("all.en | --force")


def check_corpus_accepted(world: World) -> Violations:
    change_file(world.corpus / "all.de", lambda content: content.replace(b"Hund", b"Kuh"))
    return world.check_same_end(says="Continuing with the tokens in the run folder", force=True)


def check_damaged(world: World, pattern: str, words: str) -> Violations:
    """One bit of a file of the run has changed."""
    (path, *_) = sorted(world.copy_folder.glob(pattern))
    change_file(path, flip_bit)
    return world.check_resume_refused(words)


def check_all_damaged(world: World) -> Violations:
    for path in world.copy_folder.glob("checkpoints/*/state.json"):
        change_file(path, flip_bit)
    return world.check_resume_refused("No intact checkpoint is left | from a backup")


def check_journal_truncated(world: World) -> Violations:
    change_file(world.copy_folder / "metrics.jsonl", lambda content: content[:-100])
    return world.check_resume_refused("Lines are missing | metrics.jsonl")


def check_newest_deleted(world: World) -> Violations:
    shutil.rmtree(world.copy_folder / "checkpoints" / "step-00000008")
    return world.check_same_end()


def check_clock(world: World, jump: float) -> Violations:
    """The clock jumps a day forward or back between any two calls."""
    real_time, calls = time.time, iter(range(1_000_000))
    with mock.patch("time.time", side_effect=lambda: real_time() + jump * (next(calls) % 2)):
        return world.check_same_end()


def check_file_times(world: World, jump: float) -> Violations:
    """The newest checkpoint is the oldest file, or everything comes from tomorrow."""
    for path in (*world.copy_folder.glob("checkpoints/step-00000008/*"), *world.copy_folder.glob("checkpoints/*")):
        os.utime(path, (time.time() + jump,) * 2)
    return world.check_same_end()


def check_two_runs(world: World) -> Violations:
    """A second process is refused while another one trains in the folder; after that ends, the folder is free."""
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resume(world.copy_folder, listeners=[lambda event: _hold(event, go)])
        finally:
            os._exit(0)
    os.read(ready, 1)
    broken = world.check_resume_refused("Another process is writing this folder")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(go)
    return broken + world.check_same_end()


def _hold(event: Event, go: int) -> None:
    if isinstance(event, StepFinished) and event.step == 10:
        os.write(go, b".")
        time.sleep(60)


def check_begun_twice(world: World) -> Violations:
    return world.check_refused("The folder is not empty | --resume", lambda: fit(world.run, world.copy_folder))


def check_finished(world: World) -> Violations:
    resume(world.copy_folder)
    return world.check_resume_refused("The run is finished | --more")


def list_failures(conditions: Mapping[str, bool]) -> Violations:
    """List the conditions that do not hold."""
    return [message for message, holds in conditions.items() if not holds]


CASES: dict[str, Case] = {
    "a loss that is nan": lambda world: check_skipped(world, {5: math.nan}),
    "a loss that is infinite": lambda world: check_skipped(world, {5: math.inf}),
    "a gradient that is nan": lambda world: check_skipped(world, {}, {5: math.nan}),
    "a gradient that is infinite": lambda world: check_skipped(world, {}, {5: -math.inf}),
    "nan, policy stop": check_stopped,
    "nan, eight times in a row": check_recovered,
    "nan in every batch": check_gives_up,
    "another learning rate": lambda world: world.check_resume_refused(
        "train.schedule.lr: was 0.01, is 0.02 | --force", changes={"train.schedule.lr": 0.02}
    ),
    "another width": lambda world: world.check_resume_refused(
        "model.d_model: was 16, is 32", changes={"model.d_model": 32}
    ),
    "another seed": lambda world: world.check_resume_refused("seed: was", changes={"seed": 7}),
    "another vocabulary, even accepted": lambda world: world.check_resume_refused(
        "tokenizer.vocabulary: was 300, is 400 | start a new run",
        changes={"tokenizer.vocabulary": 400},
        force=True,
    ),
    "fewer steps than made": lambda world: world.check_resume_refused("has already completed 8 steps", steps=5),
    "another clip, accepted": check_accepted,
    "killed before acceptance is recorded": lambda world: check_killed_after_acceptance(world, "accepted.json"),
    "killed before the accepted settings are written": lambda world: check_killed_after_acceptance(world, "run.toml"),
    "killed before a checkpoint has the accepted settings": lambda world: check_killed_after_acceptance(
        world, "manifest.json"
    ),
    "run.toml edited after settings were accepted": check_edited_after_acceptance,
    "run.toml edited by hand": lambda world: check_edited(
        world, "smoothing = 0.1", "smoothing = 0.2", "smoothing: was"
    ),
    "run.toml cut": lambda world: check_edited(world, "[train]", "[train", "run.toml"),
    "a word of the corpus changed": lambda world: check_corpus_changed(world, flip_bit),
    "the corpus shrunk": lambda world: check_corpus_changed(world, lambda content: content[: len(content) // 2]),
    "the corpus grew": lambda world: check_corpus_changed(world, lambda content: content + b"ein Hund\n"),
    "the corpus is gone": check_corpus_missing,
    "the corpus changed, accepted": check_corpus_accepted,
    "a bit of a shard": lambda world: check_damaged(world, "shards/train/*.bin", "bin"),
    "a bit of a shard's index": lambda world: check_damaged(world, "shards/train/*.idx", "idx"),
    "a bit of the vocabulary": lambda world: check_damaged(world, "tokenizer/tokenizer.json", "tokenizer.json"),
    "all checkpoints damaged": check_all_damaged,
    "metrics.jsonl lost lines": check_journal_truncated,
    "the newest checkpoint is gone": check_newest_deleted,
    "the clock jumps a day on": lambda world: check_clock(world, DAY),
    "the clock jumps a day back": lambda world: check_clock(world, -DAY),
    "files from tomorrow": lambda world: check_file_times(world, DAY),
    "files from yesterday": lambda world: check_file_times(world, -DAY),
    "two runs in one folder": check_two_runs,
    "a new run in a run's folder": check_begun_twice,
    "a finished run": check_finished,
}  # fmt: skip
QUICK = (
    "a gradient that is nan", "nan, policy stop", "another learning rate", "run.toml edited by hand",
    "killed before a checkpoint has the accepted settings", "run.toml edited after settings were accepted",
    "a word of the corpus changed", "a bit of a shard", "the clock jumps a day back", "two runs in one folder",
)  # fmt: skip
