"""R7: a checkpoint of any number of ranks goes on, on any other number: equal to the bit, and with equal losses.

A run is paused by FSDP2 on two ranks, HSDP 2 x 2 and FSDP2 + tensor parallelism 2 x 2, and resumed on 1, 2, 3 and 4
ranks, each of which first saves again what it has loaded: all tensors must have the same bits. Then it trains to the
end: its losses must be those of one rank. On the same ranks the whole run must end with the same bits.
"""

import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.config.run import RunConfig
from regard.training.checkpoint.folder import Checkpoints
from regard.training.run import fit, resume
from tests.faults.frozen import make_scratch_folder, make_smallest_run
from tests.faults.verdict import Verdict
from tests.training.runs import compute_fingerprints, read_metrics
from tests.training.sharded_cases import group_of, hash_tensors, train
from tests.training.workers import run_workers

PAUSE = 6  # steps of 12
TOLERANCE = 1e-5  # of a loss per token
MODES: dict[str, tuple[int, dict[str, Any]]] = {  # ranks, and settings of [parallel]
    "fsdp2": (2, {"mode": "fsdp"}),
    "hsdp2x2": (4, {"mode": "fsdp", "replicas": 2}),
    "fsdp2+tensor2": (4, {"mode": "fsdp", "tensor": 2}),
    "fsdp3": (3, {"mode": "fsdp"}),
    "ddp2": (2, {"mode": "ddp"}),
}
DEFAULTS = {"mode": "auto", "replicas": 1, "tensor": 1}
SAVING = ["fsdp2", "hsdp2x2", "fsdp2+tensor2"]
SECONDS = 1500.0  # for everything; idle, it takes a minute


def prove(quick: bool = False) -> Verdict:
    """Three savers and six loaders; or, quick, FSDP2 on two ranks, and one rank."""
    verdict = Verdict("R7", "resumptions on the same or other ranks had other bits or other losses")
    savers, loaders = (SAVING[:1], ["fsdp2"]) if quick else (SAVING, list(MODES))
    with make_scratch_folder() as folder:
        fit(_make_run(folder), folder / "one")
        arguments = {"folder": str(folder), "savers": savers, "loaders": loaders}
        ranks = max(MODES[name][0] for name in loaders)
        run_workers("tests.faults.resharding:work", ranks, arguments, folder=folder, timeout=SECONDS)
        differences = []
        for saver in savers:
            resume_copy(folder, saver, "one", lambda place, pause: resume(place, pause_at=pause))
            saved = _load(folder / saver / "checkpoints")
            for loader in ["one", *loaders]:
                copy = folder / f"{saver} on {loader}"
                loaded = _load(copy.with_name(f"{copy.name}, loaded"))
                differences.append(_compare_losses(folder / "one", copy))
                broken = [f"{name} differs" for name in sorted(saved) if saved[name] != loaded.get(name)]
                broken += [] if differences[-1] <= TOLERANCE else [f"the losses differ by {differences[-1]:.1e}"]
                verdict.add_fault(f"saved by {saver}, resumed by {loader}", broken)
            whole, resumed = (compute_fingerprints(folder / name) for name in (f"{saver} whole", f"{saver} on {saver}"))
            broken = [f"{name} differs" for name in sorted(whole) if whole[name] != resumed.get(name)]
            verdict.add_fault(f"resumed by {saver}", broken)
        verdict.notes.append(f"losses differ from those of one rank by at most {max(differences):.1e}")
    return verdict


def work(folder: str, savers: list[str], loaders: list[str]) -> None:
    """Save and resume in every mode: what each rank does."""
    place = Path(folder)
    for saver in savers:
        with group_of(MODES[saver][0], place / f"save-{saver}") as is_member:
            if is_member:
                train(_make_run(place, saver), place / f"{saver} whole")
                train(_make_run(place, saver), place / saver, pause_at=PAUSE)
    for loader in loaders:
        changes = {f"parallel.{name}": value for name, value in (DEFAULTS | MODES[loader][1]).items()}
        with group_of(MODES[loader][0], place / f"load-{loader}") as is_member:
            for saver in savers if is_member else ():
                resume_copy(place, saver, loader, lambda copy, pause: train(None, copy, pause, changes))  # noqa: B023


def resume_copy(folder: Path, saver: str, loader: str, go_on: Callable[[Path, int | None], object]) -> None:
    """Resume a copy of a paused run: save again what was loaded, keep that, and train to the end."""
    copy, is_main = folder / f"{saver} on {loader}", os.environ.get("RANK", "0") == "0"
    if is_main:
        shutil.copytree(folder / saver, copy)
    go_on(copy, PAUSE)  # the other ranks wait for rank 0 there
    if is_main:
        shutil.copytree(copy / "checkpoints", copy.with_name(f"{copy.name}, loaded"))
    go_on(copy, None)


def _make_run(folder: Path, mode: str | None = None) -> RunConfig:
    """Make a run with five batches per step, which no number of ranks divides."""
    settings = {} if mode is None else MODES[mode][1]
    changes = {f"parallel.{name}": value for name, value in settings.items()}
    return make_smallest_run(folder, **{"train.step_tokens": 5 * 128}, **changes)


def _load(folder: Path) -> dict[str, str]:
    """Return the hashes of all tensors at the pause, which one rank loads."""
    return hash_tensors(Checkpoints(folder, print).load(PAUSE))


def _compare_losses(first: Path, second: Path) -> float:
    """Return the largest difference between the losses of two runs."""
    losses = [{line["step"]: line["loss"] for line in read_metrics(run) if "loss" in line} for run in (first, second)]
    if losses[0].keys() != losses[1].keys():
        return math.inf
    return max(abs(loss - losses[1][step]) for step, loss in losses[0].items())
