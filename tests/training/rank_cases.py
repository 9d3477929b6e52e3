"""Everything that CI does on several ranks, in one set of processes: to start them takes longer than the cases.

`python -m tests.ranks` and `python -m tests.faults R7` are the long forms.
"""

import math
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from regard.config.run import RunConfig
from regard.store.weights import get_weights
from regard.training.distributed.context import DistributedContext, make_mesh
from regard.training.distributed.layout import ParallelLayout
from regard.training.distributed.processes import SingleProcess
from regard.training.objective import Objective
from regard.training.run import fit
from tests.ranks import FAMILY_CHANGES, ONE, Case, continue_run, train_cases
from tests.training.factories import SpikyObjective
from tests.training.runs import make_small_run
from tests.training.sharded_cases import Hashes, group_of, hash_named, save_and_load, train

RANKS = 4
CASES: list[Case] = [
    ("ddp2", "translation"),
    ("fsdp2", "translation"),
    ("tensor2", "causal_lm"),
    ("ddp2", "images"),
    ("ddp2", "audio"),
    ("ddp2", "pixels"),
]
BFLOAT16_CASE: Case = ("fsdp3", "causal_lm")  # three ranks, because a division by two would round nothing
GRID_CASE: Case = ("fsdp2+tensor2", "causal_lm")  # shards times tensor parallelism, on all four ranks
DRAWN_LAYOUTS = [ParallelLayout(), ParallelLayout(shards=4), ParallelLayout(2, 2), ParallelLayout(shards=2, tensor=2)]
CASE_STEPS = 4
CHANGING_STEPS = 6  # two on one rank, two on two, two on one
SPIKY_BATCHES = range(4, 20)  # of step 3: eight times two


def run_all(folder: str) -> dict[str, Any]:
    """Run all cases on this rank; ranks beyond the number that a case needs wait, or train alone for comparison."""
    place, rank = Path(folder), int(os.environ["RANK"])
    training, changing = str(place / "training"), place / "changing"
    results: dict[str, Any] = {"checkpoints": save_and_load(str(place / "checkpoints")), "changing": [], "one": []}
    with group_of(RANKS, place / "grid"):
        results["grid"] = train_cases(training, [GRID_CASE], CASE_STEPS, DistributedContext())
        results["drawn"] = {str(layout): draw_weights(layout, place) for layout in DRAWN_LAYOUTS}
    with group_of(3, place / "bfloat16-group") as is_member:
        case: Case = BFLOAT16_CASE if is_member else (ONE, BFLOAT16_CASE[1])
        processes = DistributedContext() if is_member else SingleProcess()
        results["bfloat16"] = train_cases(str(place / "bfloat16"), [case], CASE_STEPS, processes)
    if rank == 0:
        results["changing"] += continue_run(str(changing / "changing"), 2, SingleProcess())
    with group_of(2, place / "group") as is_member:
        if is_member:
            results["training"] = train_cases(training, CASES, CASE_STEPS, DistributedContext())
            results["changing"] += continue_run(str(changing / "changing"), 4, DistributedContext())
            with make_spike():
                train(make_recovering_run(place), place / "recovered")
            train(make_tuned_run(place), place / "tuned", pause_at=2)
            train(None, place / "tuned")
            with terminate_while_waiting(rank):
                results["stopped"] = train(make_tuned_run(place), place / "stopped").reason
            results["resumed"] = train(None, place / "stopped").reason
        elif rank == 2:
            tasks = sorted({task for _, task in CASES})
            results["training"] = train_cases(training, [("one", task) for task in tasks], CASE_STEPS, SingleProcess())
            results["one"] += continue_run(str(changing / "one"), CHANGING_STEPS, SingleProcess())
            with make_spike():
                fit(make_recovering_run(place), place / "recovered-one", processes=SingleProcess())
    if rank == 0:
        results["changing"] += continue_run(str(changing / "changing"), CHANGING_STEPS, SingleProcess())
        fit(make_tuned_run(place), place / "tuned-one", processes=SingleProcess())
    return results


def draw_weights(layout: ParallelLayout, place: Path) -> Hashes:
    """Return the hashes of the initial weights, drawn as those of a large model."""
    run = make_small_run("causal_lm", find_corpus(place), FAMILY_CHANGES["causal_lm"])
    processes = SingleProcess()
    if layout.is_sharded:
        processes = group = DistributedContext()
        group.layout, group.mesh = layout, make_mesh(layout, "cpu")
    with mock.patch("regard.models.init.MAX_SEQUENTIAL", 0):
        model = processes.build(run.model, seed=5, device="cpu")
        processes.shard(Objective.from_run(model, run))
    return hash_named(get_weights(model))


def make_recovering_run(place: Path) -> RunConfig:
    """Return a run that starts over after spikes in a row."""
    changes = {
        "train.spikes.window": 8,
        "train.steps": 16,
        "train.save_every": 4,
        "train.average": 1,
        "validation.every_steps": 16,
        "validation.sentences": 0,
        "validation.samples": 0,
        "parallel.mode": "fsdp",
    }
    return make_small_run("translation", find_corpus(place), changes)


def make_tuned_run(place: Path) -> RunConfig:
    """Return a run that trains adapters of the model of the recovering run."""
    changes: dict[str, Any] = {
        "finetune": {"parent": str(place / "recovered"), "lora": {"rank": 2, "dropout": 0.1}},
        "tokenizer": {"kind": "parent"},
        "train.steps": 4,
        "train.save_every": 4,
        "train.average": 1,
        "validation.every_steps": 4,
        "validation.sentences": 2,
        "parallel.mode": "fsdp",
    }
    return make_small_run("translation", find_corpus(place), changes)


def find_corpus(place: Path) -> dict[str, str]:
    """Return the files of a corpus with more than 52 batches, which `conftest.py` has written."""
    return {name: str(place / "corpus" / name) for name in ("all.en", "all.de", "book.txt")}


@contextmanager
def terminate_while_waiting(rank: int) -> Iterator[None]:
    """Send SIGTERM to rank 1 alone, while it waits for the settings of rank 0."""
    broadcast = DistributedContext.broadcast

    def end(group: DistributedContext, value: Any, *, patient: bool = False, while_waiting: Any = None) -> Any:
        if rank == 1 and patient:
            os.kill(os.getpid(), signal.SIGTERM)
        return broadcast(group, value, patient=patient, while_waiting=while_waiting)

    with mock.patch.object(DistributedContext, "broadcast", end):
        yield


def make_spike() -> Any:
    """Return a context in which some batches, on whichever rank, have a loss that is not finite."""
    SpikyObjective.batch_factors = dict.fromkeys(SPIKY_BATCHES, math.nan)
    return mock.patch("regard.training.trainer.Objective", SpikyObjective)
