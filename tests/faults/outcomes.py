"""R8: things that go wrong around a run, each with one defined outcome: refused, mended or said. Nothing is silent."""

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

from regard.cli.train import CODES
from regard.config.codec import RUN_FILES
from regard.store.model_folder import read_model
from regard.train.events import Event, Updated
from regard.train.fit import fit, resume
from tests.faults.frozen import room
from tests.faults.verdict import Verdict
from tests.faults.world import Broken, World
from tests.train.runs import metrics
from tests.train.test_trainer import Spiky

DAY = 86_400.0
FOREVER = dict.fromkeys(range(1, 1000), math.nan)
Case = Callable[[World], Broken]


def prove(quick: bool = False) -> Verdict:
    """Every case once; or, quick, some of each kind."""
    verdict = Verdict("R8", "cases of NaN, changed settings or data, clocks and shared folders had another outcome")
    with room() as folder:
        world = World(folder)
        for name in QUICK if quick else CASES:
            world.copy()
            try:
                broken = CASES[name](world)
            except Exception:
                broken = [traceback.format_exc(limit=-3)]
            verdict.injected(name, broken)
    return verdict


@contextmanager
def spiky(faults: Mapping[int, float], gradients: Mapping[int, float] = {}) -> Iterator[None]:
    """Batches (counted from 1) whose loss or gradient is multiplied by something that is no number."""
    Spiky.seen, Spiky.faults, Spiky.numbers, Spiky.gradients = 0, dict(faults), {}, dict(gradients)
    with mock.patch("regard.train.trainer.Objective", Spiky):
        yield


def left_out(world: World, loss: Mapping[int, float], gradient: Mapping[int, float] = {}) -> Broken:
    """The update is left out, said and recorded; the weights stay numbers; the run makes all its updates."""
    with spiky(loss, gradient):
        spikes, end = world.spikes({})
    lines = [line for line in metrics(world.copied) if "spike" in line]
    weights = read_model(world.copied).model.state_dict().values()
    return failing({
        "one spike is told and recorded": len(spikes) == len(lines) == 1 and lines[0]["done"] == "left out",
        "the run is finished": (end.why, end.update) == ("finished", 12),
        "all weights are numbers": all(bool(torch.isfinite(tensor).all()) for tensor in weights),
    })  # fmt: skip


def stopped(world: World) -> Broken:
    with spiky({9: math.nan}):  # update 5
        spikes, end = world.spikes({"train.spikes": {"kind": "stop"}})
    left = sorted(path.name for path in (world.copied / "checkpoints").iterdir())
    return failing({
        "it stops before the spike, with code 76": (end.why, end.update, CODES[end.why]) == ("spike", 4, 76),
        "the spike is told": len(spikes) == 1 and spikes[0].done.startswith("stopped"),
        "what was learned is saved": left[-1] == "step-00000004",
    })  # fmt: skip


def rewound(world: World) -> Broken:
    with spiky({13: math.nan}):  # update 7
        spikes, end = world.spikes({"train.spikes": {"kind": "rewind", "back": 1}})
    return failing({
        "it goes back and says so": len(spikes) == 1 and "went back to update 4" in spikes[0].done,
        "it is finished then": (end.why, end.update) == ("finished", 12),
    })  # fmt: skip


def out_of_patience(world: World) -> Broken:
    with spiky(FOREVER):
        spikes, end = world.spikes({"train.spikes": {"kind": "skip", "most": 3}})
    return failing({"it gives up after 4": (end.why, end.update, len(spikes)) == ("spike", 0, 4)})


def accepted(world: World) -> Broken:
    resume(world.copied, changes={"train.clip": 0.25}, accept={"config"})
    state = json.loads((world.copied / "checkpoints" / "step-00000012" / "state.json").read_text())
    return failing({
        "run.toml has it": RUN_FILES().load(world.copied / "run.toml").train.clip == 0.25,
        "the checkpoint has it": state["run"]["train"]["clip"] == 0.25,
    })  # fmt: skip


def edited(world: World, old: str, new: str, words: str) -> Broken:
    """The run file was edited by hand."""
    path = world.copied / "run.toml"
    text = path.read_text()
    if old not in text:
        return [f"run.toml has no {old!r}"]
    path.write_text(text.replace(old, new))
    return world.resume_refused(words)


def changed(path: Path, change: Callable[[bytes], bytes]) -> None:
    """A file becomes another one."""
    path.write_bytes(change(path.read_bytes()))


def flipped(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


def corpus_changed(world: World, change: Callable[[bytes], bytes]) -> Broken:
    changed(world.corpus / "all.de", change)
    return world.resume_refused("all.de | --accept data")


def corpus_missing(world: World) -> Broken:
    (world.corpus / "all.en").unlink()
    return world.resume_refused("all.en | --accept data")


def corpus_accepted(world: World) -> Broken:
    changed(world.corpus / "all.de", lambda content: content.replace(b"Hund", b"Kuh"))
    return world.ends_alike(says="goes on with the tokens that it has", accept={"data"})


def damaged(world: World, pattern: str, words: str) -> Broken:
    """A file of the run's own has another bit."""
    (path, *_) = sorted(world.copied.glob(pattern))
    changed(path, flipped)
    return world.resume_refused(words)


def all_damaged(world: World) -> Broken:
    for path in world.copied.glob("checkpoints/*/state.json"):
        changed(path, flipped)
    return world.resume_refused("None of the 2 checkpoints is whole | from a copy")


def journal_cut(world: World) -> Broken:
    changed(world.copied / "metrics.jsonl", lambda content: content[:-100])
    return world.resume_refused("has lost lines | metrics.jsonl")


def newest_deleted(world: World) -> Broken:
    shutil.rmtree(world.copied / "checkpoints" / "step-00000008")
    return world.ends_alike()


def clock(world: World, jump: float) -> Broken:
    """The clock jumps between any two looks at it; a day on or back each time."""
    real, looks = time.time, iter(range(1_000_000))
    with mock.patch("time.time", side_effect=lambda: real() + jump * (next(looks) % 2)):
        return world.ends_alike()


def file_times(world: World, jump: float) -> Broken:
    """The newest checkpoint is the oldest file, or everything comes from tomorrow."""
    for path in (*world.copied.glob("checkpoints/step-00000008/*"), *world.copied.glob("checkpoints/*")):
        os.utime(path, (time.time() + jump,) * 2)
    return world.ends_alike()


def two_runs(world: World) -> Broken:
    """Another process trains in the folder: refused, and it goes on. When it is gone, the folder is free."""
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resume(world.copied, listeners=[lambda event: _hold(event, go)])
        finally:
            os._exit(0)
    os.read(ready, 1)
    broken = world.resume_refused("Another process is writing this folder")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(go)
    return broken + world.ends_alike()


def _hold(event: Event, go: int) -> None:
    if isinstance(event, Updated) and event.update == 10:
        os.write(go, b".")
        time.sleep(60)


def begun_twice(world: World) -> Broken:
    return world.refused("The folder is not empty | --resume", lambda: fit(world.run, world.copied))


def finished_already(world: World) -> Broken:
    resume(world.copied)
    return world.resume_refused("The run is finished | --more")


def failing(wanted: Mapping[str, bool]) -> Broken:
    """Those that do not hold."""
    return [what for what, holds in wanted.items() if not holds]


CASES: dict[str, Case] = {
    "a loss that is nan": lambda world: left_out(world, {5: math.nan}),
    "a loss that is infinite": lambda world: left_out(world, {5: math.inf}),
    "a gradient that is nan": lambda world: left_out(world, {}, {5: math.nan}),
    "a gradient that is infinite": lambda world: left_out(world, {}, {5: -math.inf}),
    "nan, policy stop": stopped,
    "nan, policy rewind": rewound,
    "nan in every batch": out_of_patience,
    "another rate": lambda world: world.resume_refused(
        "train.schedule.peak: was 0.01, is 0.02 | --accept config", changes={"train.schedule.peak": 0.02}
    ),
    "another width": lambda world: world.resume_refused("model.width: was 16, is 32", changes={"model.width": 32}),
    "another seed": lambda world: world.resume_refused("seed: was", changes={"seed": 7}),
    "another vocabulary, even accepted": lambda world: world.resume_refused(
        "tokenizer.vocabulary: was 300, is 400 | start a new run",
        changes={"tokenizer.vocabulary": 400},
        accept={"config"},
    ),
    "fewer updates than made": lambda world: world.resume_refused("has made 8 updates already", updates=5),
    "another clip, accepted": accepted,
    "run.toml edited by hand": lambda world: edited(world, "smoothing = 0.1", "smoothing = 0.2", "smoothing: was"),
    "run.toml cut": lambda world: edited(world, "[train]", "[train", "run.toml"),
    "a word of the corpus changed": lambda world: corpus_changed(world, flipped),
    "the corpus shrunk": lambda world: corpus_changed(world, lambda content: content[: len(content) // 2]),
    "the corpus grew": lambda world: corpus_changed(world, lambda content: content + b"ein Hund\n"),
    "the corpus is gone": corpus_missing,
    "the corpus changed, accepted": corpus_accepted,
    "a bit of a shard": lambda world: damaged(world, "shards/train/*.bin", "bin"),
    "a bit of a shard's index": lambda world: damaged(world, "shards/train/*.idx", "idx"),
    "a bit of the vocabulary": lambda world: damaged(world, "vocabulary/tokenizer.json", "tokenizer.json"),
    "all checkpoints damaged": all_damaged,
    "metrics.jsonl lost lines": journal_cut,
    "the newest checkpoint is gone": newest_deleted,
    "the clock jumps a day on": lambda world: clock(world, DAY),
    "the clock jumps a day back": lambda world: clock(world, -DAY),
    "files from tomorrow": lambda world: file_times(world, DAY),
    "files from yesterday": lambda world: file_times(world, -DAY),
    "two runs in one folder": two_runs,
    "a new run in a run's folder": begun_twice,
    "a finished run": finished_already,
}  # fmt: skip
QUICK = (
    "a gradient that is nan", "nan, policy stop", "another rate", "run.toml edited by hand",
    "a word of the corpus changed", "a bit of a shard", "the clock jumps a day back", "two runs in one folder",
)  # fmt: skip
