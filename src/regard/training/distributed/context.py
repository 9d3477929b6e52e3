"""Distributed training with DDP, FSDP2, HSDP and tensor parallelism, without changes to the model code.

`connect` joins the process group described by the launcher's environment variables (torchrun, Slurm, Kubernetes,
`regard train --ranks`). `DistributedContext` has the same interface as `processes.SingleProcess`.

    RANK, WORLD_SIZE, LOCAL_RANK       as torchrun sets them
    MASTER_ADDR, MASTER_PORT           the TCP store, or
    REGARD_STORE                       a file: the store is at <REGARD_STORE>-<TORCHELASTIC_RESTART_COUNT>; or
                                       tcp://HOST:PORT, a store served by the launcher on the first host
    REGARD_TIMEOUT                     seconds that a rank waits for the others in a step (600)
"""

import ctypes
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict
from datetime import timedelta
from typing import cast

import torch
import torch.distributed as dist  # noqa: TID251
from torch import Tensor, nn
from torch._C._distributed_c10d import FileStore, PrefixStore, Store, TCPStore
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # noqa: TID251
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh  # noqa: TID251
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard  # noqa: TID251
from torch.distributed.tensor import DTensor  # noqa: TID251
from torch.distributed.tensor.parallel import (  # noqa: TID251
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    parallelize_module,
)
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from regard.base.errors import RegardError, RetryError
from regard.config.model import AnyModelConfig
from regard.config.run import RunConfig
from regard.models.build import AnyModel, build
from regard.models.init import init_weights
from regard.nn.attention import Attention
from regard.nn.feedforward import FeedForward
from regard.nn.stack import Stack
from regard.training.distributed.layout import ParallelLayout, check_batches, choose_layout, fits_whole
from regard.training.distributed.processes import Json, SingleProcess
from regard.training.objective import Objective
from regard.training.precision import AUTOCAST_DTYPES, Precision

TIMEOUT = 600.0  # seconds; the default of REGARD_TIMEOUT
PATIENCE = timedelta(days=7)  # waiting for rank 0: data preparation, tuning, validation, checkpoints
DIMENSIONS = ("replicas", "shards", "tensor")
LOST_RANK_SIGNS = ("gloo", "connection closed by peer", "connection reset", "timed out waiting", "nccl")
M_MMAP_THRESHOLD, MAPPED_BYTES = -3, 2**20  # a parameter of glibc's mallopt, and its value
MESSAGE_BYTES = 2048  # of a broadcast decision; a longer one takes a second broadcast


def connect() -> "DistributedContext":
    """Join the process group described by the environment variables."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    timeout = timedelta(seconds=float(os.environ.get("REGARD_TIMEOUT", TIMEOUT)))
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count())
    store = _open_store(world_size, timeout)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=timeout)
    return DistributedContext()


def _open_store(world_size: int, timeout: timedelta) -> Store | None:
    """Open our launcher's store, with a key prefix per attempt; returns None to use torchrun's store."""
    place = os.environ.get("REGARD_STORE")
    if place is None:
        return None
    if place.startswith("tcp://"):
        host, _, port = place.removeprefix("tcp://").rpartition(":")
        server = TCPStore(host, int(port), is_master=False, timeout=timeout)
        return PrefixStore(f"ranks-{os.environ['MASTER_PORT']}", server)  # changes with every attempt, on all hosts
    store = FileStore(f"{place}-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", world_size)
    store.set_timeout(timeout)
    return store


def make_mesh(layout: ParallelLayout, device_type: str) -> DeviceMesh:
    """Create the device mesh of a layout, with dimensions `DIMENSIONS`."""
    return init_device_mesh(device_type, (layout.replicas, layout.shards, layout.tensor), mesh_dim_names=DIMENSIONS)


def apply_layout(
    objective: Objective, layout: ParallelLayout, mesh: DeviceMesh, precision: Precision = "float32"
) -> None:
    """Split the matrices of each layer, then shard layer by layer; the root module shards embedding and head.

    Ranks gather the matrices of a layer in the type in which autocast multiplies them: half the bytes, the same values.
    Other parameters and all gradients are sent in float32. So are the matrices of compiled layers, because a gather
    inside a compiled layer would split its graph.
    """
    if layout.tensor > 1:
        for module in objective.modules():
            plan: dict[str, ParallelStyle] = {}
            if isinstance(module, Attention):
                plan = {name: ColwiseParallel() for name in ("query", "key", "value")} | {"output": RowwiseParallel()}
            elif isinstance(module, FeedForward):
                names = ("up",) if module.gate is None else ("up", "gate")
                plan = {name: ColwiseParallel() for name in names} | {"down": RowwiseParallel()}
            if plan:
                parallelize_module(module, mesh["tensor"], plan)
    if layout.shards > 1:
        data_mesh = mesh["replicas", "shards"] if layout.replicas > 1 else mesh["shards"]
        dtype = None if objective.is_compiled else AUTOCAST_DTYPES.get(precision)
        policy = MixedPrecisionPolicy(dtype, torch.float32, cast_forward_inputs=False)
        for module in objective.modules():
            if isinstance(module, Stack):
                for layer in module.layers:
                    if dtype is not None and (matrices := _find_matrices(layer)):
                        fully_shard(matrices, mesh=data_mesh, mp_policy=policy)
                    fully_shard(layer, mesh=data_mesh)
        fully_shard(objective, mesh=data_mesh)
        for module in objective.modules():
            if isinstance(module, FSDPModule):  # sums gradients, as `_sum_gradients`
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)


def _find_matrices(layer: nn.Module) -> list[nn.Module]:
    """Return the projections of a layer without an adapter, which autocast multiplies in low precision."""
    modules = [module for module in layer.modules() if isinstance(module, Attention | FeedForward)]
    return [part for module in modules for part in module.children() if type(part) is nn.Linear]


class DistributedContext(SingleProcess):
    """Process group of `torch.distributed`; `init_device_mesh` selects the parallel layout of the run's model."""

    def __init__(self) -> None:
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.ranks_per_host = int(os.environ.get("LOCAL_WORLD_SIZE", self.world_size))
        self.layout = ParallelLayout(replicas=self.world_size)
        self.mesh: DeviceMesh | None = None
        backend = "fake" if dist.get_backend() == "fake" else "gloo"  # `regard plan` simulates a group
        self._patient_group = dist.new_group(backend=backend, timeout=PATIENCE)
        self._root: nn.Module | None = None
        self._gradients_ready = math.inf
        self._recipe: tuple[AnyModelConfig, int, str] | None = None  # settings, seed and device of a model on meta

    @property
    def is_first_on_host(self) -> bool:
        """Whether this process has the lowest rank of its machine."""
        return self.rank % self.ranks_per_host == 0

    @property
    def layout(self) -> ParallelLayout:
        """Parallel layout of the model; setting it updates the derived attributes."""
        return self._layout

    @layout.setter
    def layout(self, layout: ParallelLayout) -> None:
        self._layout, self.is_sharded = layout, layout.is_sharded
        self.tensor_ranks = layout.tensor
        self.data_rank, self.data_world_size = self.rank // layout.tensor, layout.data_world_size
        self.copies_per_host = self.ranks_per_host / (layout.shards * layout.tensor)

    def check(self, run: RunConfig) -> None:
        """Choose the layout of a run on this rank; raises an error if the ranks cannot train it."""
        self.layout = choose_layout(run, self.world_size, self.ranks_per_host)
        check_batches(run, self.layout)

    def init_device_mesh(self, run: RunConfig) -> None:
        """Broadcast rank 0's layout, since hosts may differ in memory, and create its device mesh."""
        sizes = asdict(choose_layout(run, self.world_size, self.ranks_per_host)) if self.is_main else None
        self.layout = ParallelLayout(**self.broadcast(sizes))
        self.mesh = make_mesh(self.layout, torch.device(run.device.name).type)

    def can_autotune(self, run: RunConfig) -> bool:
        """Whether rank 0 has enough memory for a full copy of the model, used to time device settings."""
        return not self.layout.is_sharded or fits_whole(run, self.ranks_per_host)

    def __str__(self) -> str:
        return str(self.layout)

    def build(self, settings: AnyModelConfig, *, seed: int, device: str) -> AnyModel:
        """Build the model; a model to be sharded has no weights until `shard`."""
        if not self.layout.is_sharded:
            return super().build(settings, seed=seed, device=device)
        self._recipe = (settings, seed, device)
        with torch.device("meta"):
            return build(settings)

    def shard(self, objective: Objective, precision: Precision = "float32") -> Objective:
        """Wrap the objective (DDP), or shard it in place and initialize its weights; return the module to call."""
        if not self.layout.is_sharded:
            device = next(objective.parameters()).device
            ids = [device] if device.type == "cuda" else None
            wrapped = DistributedDataParallel(objective, device_ids=ids, gradient_as_bucket_view=True)
            wrapped.register_comm_hook(None, _sum_gradients)
            self._root = wrapped
            first = next(parameter for parameter in objective.parameters() if parameter.requires_grad)
            first.register_post_accumulate_grad_hook(self._mark_gradients)  # the last one to get its gradient
            return cast(Objective, wrapped)  # called like the objective; its attributes are those of DDP
        if self._recipe is None or self.mesh is None:
            raise AssertionError("`init_device_mesh` and `build` come before `shard`")
        settings, seed, device_name = self._recipe
        if torch.device(device_name).type == "cpu":
            _return_freed_memory()
        apply_layout(objective, self.layout, self.mesh, precision)
        objective.to_empty(device=device_name)
        init_weights(objective.model, settings, seed, locate=_locate_shard)
        self._root = objective
        return objective

    def draw_weights(self, model: AnyModel, settings: AnyModelConfig, seed: int) -> None:
        """Reset the model to its initial weights."""
        if self.layout.is_sharded:
            init_weights(model, settings, seed, locate=_locate_shard)
        else:
            super().draw_weights(model, settings, seed)

    def accumulate(self, is_last: bool) -> AbstractContextManager[object]:
        """Synchronize gradients only in the last pass of a step."""
        root = self._root
        if isinstance(root, DistributedDataParallel):
            return self._time_reduction() if is_last else root.no_sync()
        if isinstance(root, FSDPModule):
            root.set_requires_gradient_sync(is_last)
        return nullcontext()

    def _mark_gradients(self, _parameter: Tensor) -> None:
        self._gradients_ready = time.perf_counter()

    @contextmanager
    def _time_reduction(self) -> Iterator[None]:
        """Measure how long this rank waits for the gradients of the others after its own are ready."""
        self._gradients_ready = math.inf  # if the pass does not reach the parameter
        yield
        self.waited_seconds += max(0.0, time.perf_counter() - self._gradients_ready)

    @contextmanager
    def _time_wait(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.waited_seconds += time.perf_counter() - start

    def end_evaluation(self) -> None:
        """Free the root's gathered weights: after a forward pass without backward, FSDP2 would reuse stale weights."""
        if isinstance(self._root, FSDPModule):
            self._root.reshard()

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sums over the data ranks, in float64."""
        total = torch.tensor(values, dtype=torch.float64)
        with self._time_wait():
            dist.all_reduce(total)
        return [value / self.layout.tensor for value in total.tolist()]

    def max(self, value: int) -> int:
        """Return the maximum of the values over all ranks."""
        largest = torch.tensor(value)
        with self._time_wait():
            dist.all_reduce(largest, dist.ReduceOp.MAX)
        return int(largest)

    def clip_gradients(self, parameters: Sequence[nn.Parameter], max_norm: float) -> float:
        """Clip the gradients to a maximum norm; return the norm over all shards before clipping.

        Every shard's sum of squares is divided by the number of ranks that hold it, so one all-reduce covers parameters
        of different meshes.
        """
        if not self.layout.is_sharded:
            return super().clip_gradients(parameters, max_norm)
        grads: dict[int, list[Tensor]] = {}  # local gradients by the number of ranks that hold them
        for parameter in parameters:
            if parameter.grad is not None:
                grads.setdefault(self._count_copies(parameter), []).append(_to_local(parameter.grad))
        squares = [
            torch.stack(torch._foreach_norm(tensors)).double().square().sum().cpu() / copies
            for copies, tensors in grads.items()
        ]
        total = torch.stack(squares).sum()
        with self._time_wait():
            dist.all_reduce(total)
        norm = math.sqrt(total.item()) if math.isfinite(total.item()) else total.item()
        if max_norm and norm > max_norm:
            for tensors in grads.values():
                torch._foreach_mul_(tensors, max_norm / (norm + 1e-6))
        return norm

    def broadcast(
        self, value: Json, *, patient: bool = False, while_waiting: Callable[[], object] | None = None
    ) -> Json:
        """Broadcast rank 0's value as JSON."""
        group = self._patient_group if patient else None
        content = json.dumps(value).encode() if self.is_main else b""
        message = torch.zeros(MESSAGE_BYTES, dtype=torch.uint8)
        header = f"{len(content)}:".encode()
        first = (header + content)[:MESSAGE_BYTES]
        message[: len(first)] = torch.frombuffer(bytearray(first), dtype=torch.uint8)
        work = dist.broadcast(message, src=0, group=group, async_op=True)
        while while_waiting is not None and not self.is_main and not work.is_completed():
            while_waiting()
        work.wait()
        size, _, start = message.numpy().tobytes().partition(b":")
        length = int(size)
        if len(start) < length:
            rest = torch.zeros(length, dtype=torch.uint8)
            if self.is_main:
                rest = torch.frombuffer(bytearray(content), dtype=torch.uint8)
            dist.broadcast(rest, src=0, group=group)
            start = rest.numpy().tobytes()
        return json.loads(start[:length])

    def all_gather(self, value: Json, *, patient: bool = False) -> list[Json]:
        """Return the values of all ranks, sent as JSON."""
        group = self._patient_group if patient else None
        content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        sizes = [torch.zeros((), dtype=torch.int64) for _ in range(self.world_size)]
        dist.all_gather(sizes, torch.tensor(content.numel()), group=group)
        max_size = max(int(size) for size in sizes)
        padded = nn.functional.pad(content, (0, max_size - content.numel()))
        contents = [torch.empty_like(padded) for _ in range(self.world_size)]
        dist.all_gather(contents, padded, group=group)
        return [json.loads(tensor[: int(size)].numpy().tobytes()) for size, tensor in zip(sizes, contents, strict=True)]

    def wait(self) -> None:
        """Wait for all ranks, with a timeout of days."""
        dist.all_reduce(torch.zeros(1), group=self._patient_group)

    @contextmanager
    def on_rank_zero(self) -> Iterator[bool]:
        """Run the block on rank 0 while the others wait; if rank 0 fails, the others stop waiting."""
        yield self.is_main
        self.wait()

    def full_tensor(self, tensor: Tensor) -> Tensor:
        """Return the full tensor of a sharded tensor."""
        return tensor.full_tensor().detach() if isinstance(tensor, DTensor) else tensor

    def explain(self, error: RuntimeError) -> RegardError | None:
        """Return a readable error if a collective failed because a rank exited or timed out."""
        text = str(error)
        if not isinstance(error, dist.DistError) and not any(sign in text.lower() for sign in LOST_RANK_SIGNS):
            return None
        message = f"Rank {self.rank} lost the connection to another rank, which exited or timed out."
        return RetryError(message, hint="See its output; then resume the run.")

    def close(self) -> None:
        """Destroy the process group."""
        dist.destroy_process_group()

    def _count_copies(self, parameter: nn.Parameter) -> int:
        """Return the number of ranks that hold the same shard of a parameter."""
        if not isinstance(parameter, DTensor):
            return self.world_size
        sizes = zip(parameter.placements, parameter.device_mesh.shape, strict=True)
        return self.world_size // math.prod(size for placement, size in sizes if not placement.is_replicate())


def _return_freed_memory() -> None:
    """Make glibc allocate every large tensor with mmap, so its memory returns to the system when it is freed.

    By default glibc raises the mmap threshold up to 32 MiB as such tensors are freed. FSDP2 gathers and frees the
    weights of each layer, and the resulting fragmentation doubled a rank's memory (473 to 974 MiB).
    """
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL("libc.so.6").mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


def _sum_gradients(_state: None, bucket: GradBucket) -> Future[Tensor]:
    """Sum a bucket of gradients of DDP over the ranks.

    DDP's own average would need a loss times the number of ranks, and in bfloat16 its gradients round differently.
    """
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def _to_local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _locate_shard(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return this rank's part of a parameter, and the view of the full tensor that it is, on the device "meta"."""
    return _to_local(weight), _cut_shard(torch.empty(weight.shape, device="meta"), weight)


def _cut_shard(whole: Tensor, like: Tensor) -> Tensor:
    """Return a view of this rank's part of a full tensor, sharded like another tensor."""
    if not isinstance(like, DTensor):
        return whole
    coordinate = like.device_mesh.get_coordinate()
    assert coordinate is not None  # noqa: S101 - every rank is in the mesh
    # Tensor parallelism, the last dimension of the mesh, split the tensor first.
    for index in reversed(range(like.device_mesh.ndim)):
        placement = like.placements[index]
        if not placement.is_replicate():
            dimension = placement.dim  # type: ignore[attr-defined]
            chunks = whole.chunk(like.device_mesh.size(index), dim=dimension)
            rank = coordinate[index]
            whole = chunks[rank] if rank < len(chunks) else whole.narrow(dimension, 0, 0)
    return whole
