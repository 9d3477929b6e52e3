"""R6 on two ranks: damage in every file of a checkpoint of two ranks is found by both, and by one process.

Each rank verifies its share of the files, so that either may find the damage: both must then use the checkpoint before.
"""

import random
from pathlib import Path

import torch
from torch.distributed.device_mesh import init_device_mesh  # noqa: TID251
from torch.distributed.tensor import Shard, distribute_tensor  # noqa: TID251

from regard.training.checkpoint.folder import Checkpoint, Checkpoints
from tests.faults.damage import DAMAGES, SHARES, strike_loader
from tests.faults.frozen import make_scratch_folder
from tests.faults.verdict import Verdict
from tests.training.sharded_cases import group_of, make_group
from tests.training.workers import run_workers

SECONDS = 900.0  # for all faults on two ranks; idle, they take one


def prove(quick: bool = False) -> Verdict:
    """1,000 faults on two ranks and 4,000 on one process; or, quick, 30 and 50."""
    verdict = Verdict(
        "R6x2", "damages of a checkpoint of two ranks were not found, or the good one before was not used"
    )
    with make_scratch_folder() as folder:
        arguments = {"folder": str(folder), "faults": 30 if quick else 1000}
        results = run_workers("tests.faults.rank_damage:strike", 2, arguments, folder=folder, timeout=SECONDS)
        *faults, controls = zip(*results, strict=True)
        for outcomes in faults:
            name = outcomes[0][0]
            broken = [f"rank {rank}: {message}" for rank, (_, mistakes) in enumerate(outcomes) for message in mistakes]
            verdict.add_fault(name, broken)
        verdict.require("the checkpoint without damage is not used", not any(broken for _, broken in controls))
        strike_loader(verdict, folder / "checkpoints", 50 if quick else 4000)
    return verdict


def strike(folder: str, faults: int) -> list[tuple[str, list[str]]]:
    """Damage the newest checkpoint repeatedly; return the faults and what this rank did wrong."""
    place, messages, results = Path(folder), list[str](), list[tuple[str, list[str]]]()
    with group_of(2, place / "store"):
        group, mesh = make_group(), init_device_mesh("cpu", (2,))
        weights = {"w": distribute_tensor(torch.arange(200.0), mesh, [Shard(0)])}
        checkpoints = Checkpoints(place / "checkpoints", messages.append, processes=group, parameters=weights)
        for step in (1, 2):
            checkpoints.save(step, Checkpoint(weights, {}, {}, {"progress": {"step": step}}))
        files = {path: path.read_bytes() for path in sorted(checkpoints.path(2).iterdir())}
        rng = random.Random(62)
        for number in range(faults):
            path = list(files)[number % len(files)]
            (kind,) = rng.choices([*SHARES, "missing"], [*SHARES.values(), 0.1])
            content = None if kind == "missing" else DAMAGES[kind](files[path], rng)
            group.all_gather(None)
            if group.is_main:
                path.unlink() if content is None else path.write_bytes(content)
            group.all_gather(None)
            messages.clear()
            newest = checkpoints.load_newest()
            broken = [] if newest is not None and newest[0] == 1 else [f"{path.name} was read as if it were intact"]
            is_reported = len(messages) == 1 and checkpoints.path(2).name in messages[0]
            results.append(
                (f"{kind} {path.name} {number}", broken + ([] if is_reported else [f"not reported: {messages}"]))
            )
            group.all_gather(None)
            if group.is_main:
                path.write_bytes(files[path])
        group.all_gather(None)
        newest = checkpoints.load_newest()
        results.append(("none", [] if newest is not None and newest[0] == 2 else ["the intact one is not used"]))
    return results
