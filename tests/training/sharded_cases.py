"""What the ranks of `test_sharded_checkpoint.py` do: save small models that are sharded by hand, and load them."""

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist  # noqa: TID251
from torch import Tensor, nn
from torch.distributed import FileStore  # type: ignore[attr-defined]  # noqa: TID251
from torch.distributed.device_mesh import init_device_mesh  # noqa: TID251
from torch.distributed.fsdp import fully_shard  # noqa: TID251
from torch.distributed.tensor import DTensor  # noqa: TID251
from torch.distributed.tensor.parallel import (  # noqa: TID251
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from regard.base.errors import RegardError
from regard.config.run import RunConfig
from regard.store.weights import get_weights, load_into, save_tensors
from regard.training.checkpoint.average import Ema, average_checkpoints
from regard.training.checkpoint.folder import Checkpoint, Checkpoints
from regard.training.distributed.context import DistributedContext
from regard.training.distributed.layout import ParallelLayout
from regard.training.events import Finished
from regard.training.run import fit, resume, run_worker_rank
from tests.faults.frozen import make_smallest_run

SAVED: dict[int, tuple[str, ...]] = {2: ("fsdp", "ddp"), 4: ("hsdp", "fsdp+tensor")}  # how so many ranks save
LOADED: dict[int, tuple[str, ...]] = {2: ("fsdp", "ddp"), 3: ("fsdp",), 4: ("hsdp", "fsdp+tensor")}  # and load
SHARD_WRITE = "regard.training.checkpoint.sharded.save_file"
FSDP = {"parallel.mode": "fsdp"}
Hashes = dict[str, str]


def make_group(mode: str = "fsdp") -> DistributedContext:
    """Return all ranks of the current process group."""
    group = DistributedContext()
    ranks = group.world_size
    group.layout = ParallelLayout(replicas=ranks) if mode == "ddp" else ParallelLayout(shards=ranks)
    return group


class Small(nn.Module):
    """A model whose tensors no number of ranks divides evenly: some ranks have no part of the head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 6)
        self.up, self.down, self.head = nn.Linear(6, 8), nn.Linear(8, 6), nn.Linear(6, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.embedding(tokens) + self.down(self.up(self.embedding(tokens)).relu()))


def make_model(mode: str, seed: int) -> Small:
    """Make a model that is sharded over all ranks."""
    torch.manual_seed(seed)
    model = Small()
    if mode in ("one", "ddp"):
        return model
    if mode == "fsdp":
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    else:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "inner"))
    if mode == "fsdp+tensor":
        parallelize_module(model, mesh["inner"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        mesh = mesh["replicate"]
    for module in (model.up, model.down, model):
        fully_shard(module, mesh=mesh)
    return model


def make_state(mode: str, seed: int) -> Checkpoint:
    """Return everything that a checkpoint of a model after two steps holds."""
    model = make_model(mode, seed)
    ema, optimizer = Ema(model, 0.9), torch.optim.AdamW(model.parameters(), lr=0.1, foreach=False)
    for step in range(2):
        model(torch.tensor([[1, 2, 6], [0, 3, 3]]) // (1 + step)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        ema.update(step + 1)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    moments = {
        f"{key}/{names[id(parameter)]}": tensor
        for parameter, state in optimizer.state.items()
        for key, tensor in state.items()
    }
    moments["untouched/nothing"] = torch.empty(0)
    return Checkpoint(get_weights(model), moments, ema.weights(), {"progress": {"step": seed}, "mode": mode})


def hash_tensors(checkpoint: Checkpoint) -> Hashes:
    """Return the sha256 of every whole tensor."""
    groups: dict[str, Mapping[str, Tensor]] = {
        "weights": checkpoint.weights, "optimizer": checkpoint.optimizer, "ema": checkpoint.ema
    }  # fmt: skip
    return {f"{group}/{name}": hash_tensor(tensor) for group, named in groups.items() for name, tensor in named.items()}


def hash_named(tensors: Mapping[str, Tensor]) -> Hashes:
    return {name: hash_tensor(tensor) for name, tensor in tensors.items()}


def hash_tensor(tensor: Tensor) -> str:
    whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return hashlib.sha256(repr((whole.dtype, whole.shape)).encode() + whole.numpy().tobytes()).hexdigest()


@contextmanager
def group_of(ranks: int, store: Path) -> Iterator[bool]:
    """Yield whether this process is in a new group of the first ranks; the others wait for its end."""
    rank, everybody = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    files = FileStore(f"{store}-all", everybody)
    if rank < ranks:
        dist.init_process_group(
            "gloo", store=FileStore(str(store), ranks), rank=rank, world_size=ranks, timeout=timedelta(minutes=15)
        )
        yield True
        dist.barrier()
        dist.destroy_process_group()
        files.set(f"{rank}", "done")
    else:
        yield False
    files.wait([f"{number}" for number in range(ranks)], timedelta(minutes=20))


def save_and_load(folder: str) -> dict[str, Any]:
    """Save in every mode, then load everything on 2, 3 and 4 ranks; return the hashes of all tensors."""
    place, results = Path(folder), dict[str, Any]()
    for ranks, modes in SAVED.items():
        with group_of(ranks, place / f"save-{ranks}") as is_member:
            for mode in modes if is_member else ():
                for step in (1, 2):
                    checkpoint = make_state(mode, step)
                    make_checkpoints(place / mode, checkpoint.weights, mode).save(step, checkpoint)
                    results[f"saved by {mode}"] = hash_tensors(checkpoint)
            if is_member and ranks == 2:
                results["survivor"] = survive(place / "survivor")
                for name, pause in (("whole", None), ("paused", 5)):
                    train(make_smallest_run(place / "data", **FSDP), place / name, pause_at=pause)
                train(None, place / "paused")
    for ranks, modes in LOADED.items():
        with group_of(ranks, place / f"load-{ranks}") as is_member:
            for mode in modes if is_member else ():
                for saved in ("one", *chain.from_iterable(SAVED.values())):
                    results[f"{saved} on {ranks} by {mode}"] = load(place / saved, mode)
    return results


def make_checkpoints(folder: Path, parameters: Mapping[str, Tensor], mode: str) -> Checkpoints:
    return Checkpoints(folder, print, processes=make_group(mode), parameters=parameters)


def load(folder: Path, mode: str) -> Hashes:
    """Load the newest checkpoint into another model, and return what the model has then."""
    model = make_model(mode, seed=9)
    ema = Ema(model, 0.9)
    newest = make_checkpoints(folder, get_weights(model), mode).load_newest()
    assert newest is not None
    assert newest[0] == newest[1].state["progress"]["step"] == 2
    loaded = newest[1]
    load_into(model, loaded.weights, location="the checkpoint")
    ema.load(loaded.ema)
    return hash_tensors(Checkpoint(get_weights(model), loaded.optimizer, ema.weights(), {}))


def survive(folder: Path) -> dict[str, Any]:
    """Damage and lose checkpoints of two ranks, fill their disk; return what this rank sees."""
    states, warnings, results = [make_state("fsdp", step) for step in (1, 2, 3)], list[str](), dict[str, Any]()
    group = make_group()
    checkpoints = Checkpoints(folder, warnings.append, processes=group, parameters=states[0].weights)
    for step, state in enumerate(states, 1):
        checkpoints.save(step, state)
    results["average"] = hash_named(average_checkpoints(map(checkpoints.load_weights, (1, 2, 3))))
    whole = [{name: tensor.full_tensor() for name, tensor in state.weights.items()} for state in states]  # type: ignore[attr-defined]
    results["average of whole tensors"] = hash_named(average_checkpoints(whole))
    checkpoints.rotate({1})
    results["rotated"] = checkpoints.steps()
    shard = sorted(checkpoints.path(3).glob("*.safetensors"))[1]
    content = shard.read_bytes()
    for name in ("flipped", "missing"):
        group.all_gather(None)
        if group.is_main:
            shard.unlink() if name == "missing" else shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        group.all_gather(None)
        newest = checkpoints.load_newest()
        assert newest is not None
        results[name] = [newest[0], hash_tensors(newest[1]) == hash_tensors(states[0]), list(warnings)]
        warnings.clear()
    checkpoints.set_aside_after(1)
    results["set aside"] = checkpoints.steps()
    results["full"] = []
    for rank, function in ((0, SHARD_WRITE), (1, SHARD_WRITE), (0, "regard.base.files.write_manifest")):
        fail = write_to_full_disk if function == SHARD_WRITE else raise_full_disk
        with mock.patch(function, fail) if group.rank == rank else nullcontext():
            try:
                checkpoints.save(4, states[1])
            except RegardError as error:
                results["full"].append([error.message, error.location])
    results["left"] = sorted(path.name for path in folder.iterdir())
    return results


def write_to_full_disk(tensors: Mapping[str, Tensor], path: Path, **options: Any) -> None:
    path.symlink_to("/dev/full")
    save_tensors(tensors, path, **options)


def raise_full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def train(
    run: RunConfig | None, folder: Path, pause_at: int | None = None, changes: Mapping[str, Any] | None = None
) -> Finished:
    """Start a run on the ranks of the current group, or resume it if there are no settings."""
    group = DistributedContext()
    if not group.is_main:
        return run_worker_rank(folder, group)
    if run is None:
        return resume(folder, pause_at=pause_at, changes=changes, processes=group)
    return fit(run, folder, pause_at=pause_at, processes=group)
