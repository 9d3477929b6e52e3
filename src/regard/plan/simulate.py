"""Simulate one training step with fake tensors and a fake process group: memory and collectives of one rank.

The real model, objective, updater, optimizer and sharding functions run; only the tensors have no data. A plan for
1,024 ranks therefore needs less than a gigabyte on any machine. All ranks of a mesh do the same work,
so only rank 0 is simulated.
"""

import gc
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, distributed, nn  # noqa: TID251
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import DTensor  # noqa: TID251
from torch.testing._internal.distributed.fake_pg import FakeStore

from regard.base import cpu_fast_path
from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.models.build import build
from regard.plan.tracker import Collective, MemoryTracker
from regard.tasks.task import find_task
from regard.training.autotune import apply_device_settings
from regard.training.distributed.context import DistributedContext, apply_layout, make_mesh
from regard.training.distributed.layout import ParallelLayout
from regard.training.distributed.processes import SingleProcess
from regard.training.finetune import prepare_model
from regard.training.objective import Objective
from regard.training.optim import make_optimizers
from regard.training.precision import Precision
from regard.training.step import StepRunner

FULL_LAYERS = 12  # stacks of more layers are simulated with a few and extrapolated
SHORT_LAYERS = (3, 4, 5, 6, 7)  # three in a row on a line are enough; the peak may move to another place before
POINTS = 3  # of a line
TOLERANCE = 0.005  # of the peak that a line continues to
FIRST_BUCKET, BUCKET = 2**20, 25 * 2**20  # bytes after which DistributedDataParallel sends a bucket of gradients


@dataclass(frozen=True)
class Simulation:
    """Allocations and collectives of one rank in one step."""

    weights: int  # bytes of its share of the weights
    optimizer_state: int  # bytes of its share
    ema: int  # bytes of its share of the averaged weights
    gradients_peak: int  # peak bytes of forward and backward, including weights, excluding optimizer state and EMA
    step_peak: int  # peak bytes in the optimizer step, likewise with its state
    collectives: Counter[Collective]  # calls of one step
    tensors: int  # tensors of a checkpoint: weights, optimizer state, EMA

    @property
    def peak(self) -> int:
        """Peak bytes of all tensors on the rank."""
        return max(self.gradients_peak + self.optimizer_state, self.step_peak) + self.ema

    @property
    def activations(self) -> int:
        """Peak bytes of the passes excluding weights: activations, gradients, gathered weights, logits."""
        return self.gradients_peak - self.weights


def simulate(
    run: RunConfig,
    layout: ParallelLayout,
    *,
    rows: int,
    length: int,
    batches: int = 1,
    on_cpu: bool = True,
    max_layers: int = FULL_LAYERS,
) -> Simulation:
    """Simulate one step of one rank.

    Args:
        run: Settings of the run.
        layout: The parallelism layout.
        rows: Rows of a batch.
        length: Tokens per row (of the source and of the target each).
        batches: Batches that a rank computes per step.
        on_cpu: Whether the run computes on a CPU, with the CPU fast path.
        max_layers: A single stack with more layers is simulated with fewer and extrapolated, if the simulation of this
            many layers is on the line.

    Raises:
        RegardError: The model is recurrent.
    """
    stacks = [name for name in ("encoder", "decoder") if hasattr(run.model, name)]
    if any(getattr(run.model, name).kind == "recurrent" for name in stacks):
        message = (
            "A recurrent model cannot be simulated, because its kernels depend on the sequence lengths in a batch."
        )
        raise RegardError(
            message, location="model", hint="Run `regard train ... --dry-run` to measure its speed on this machine."
        )
    layers = getattr(run.model, stacks[0]).layers
    has_frozen_layers = run.finetune is not None and run.finetune.layers is not None  # then layers differ
    if len(stacks) == 1 and layers > max_layers and not has_frozen_layers:
        short: list[Simulation] = []
        for count in SHORT_LAYERS:
            changed = RUN_FILES.change(run, {f"model.{stacks[0]}.layers": count})
            short.append(_simulate(changed, layout, rows, length, batches, on_cpu))
            if len(short) >= POINTS and (longer := _extrapolate(short[-POINTS:], layers - count)) is not None:
                line = _extrapolate(short[-POINTS:], max_layers - count)
                changed = RUN_FILES.change(run, {f"model.{stacks[0]}.layers": max_layers})
                deeper = _simulate(changed, layout, rows, length, batches, on_cpu)
                if line is not None and abs(line.peak - deeper.peak) <= TOLERANCE * deeper.peak:
                    return longer
                break  # with more layers the peak is in another place, so simulate all of them
    return _simulate(run, layout, rows, length, batches, on_cpu)


def _simulate(run: RunConfig, layout: ParallelLayout, rows: int, length: int, batches: int, on_cpu: bool) -> Simulation:
    share = find_task(run.model.task).label_share(run)
    with ExitStack() as stack:
        stack.enter_context(cpu_fast_path.enabled(on_cpu and run.device.cpu_fast_path))
        processes = stack.enter_context(_fake_processes(layout))
        objective = _make_objective(run, processes)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of torch about its own fake tensors
        stack.enter_context(_without_collector())
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        tracker = stack.enter_context(MemoryTracker(share))
        stack.enter_context(tracker.track_resizes())
        _allocate(objective)
        root = processes.shard(objective, run.train.precision)
        weights = sum(map(_count_local_bytes, objective.parameters()))
        step_runner = StepRunner(
            root,
            make_optimizers(objective.model, run.train.optimizer),
            seed=run.seed,
            clip=run.train.max_grad_norm,
            precision=run.train.precision,
            processes=processes,
        )
        batch = find_task(run.model.task).synthetic_batch(run, rows, length)
        starts: list[int] = []  # how many collectives came before each batch

        def begin_batch(*_: object) -> None:
            gc.collect()  # activations of the batch before may be in reference cycles
            starts.append(len(tracker.collectives))

        root.register_forward_pre_hook(begin_batch)
        tracker.reset_peak()
        step_runner.compute_gradients([batch] * min(batches, 2), epoch=0)
        gradients_peak = tracker.peak_bytes
        gc.collect()
        tracker.peak_bytes = tracker.live_bytes
        step_runner.step(0.0)
        calls = Counter(tracker.collectives)
        if isinstance(processes, FakeGroup):
            calls.update(processes.list_bucket_reductions())
        if batches > 2:
            repeated = Counter(tracker.collectives[starts[0] : starts[1]])
            calls += Counter({call: count * (batches - 2) for call, count in repeated.items()})
        state = step_runner.optimizers.state_dict()
        state_bytes, step_peak = sum(map(_count_local_bytes, state.values())), tracker.peak_bytes
        if layout.is_sharded:  # DTensors try the step on whole tensors to find its shapes; fused Adam needs no others
            step_peak = 2 * weights + state_bytes
        weight_count = sum(1 for _ in objective.parameters())
        return Simulation(
            weights=weights,
            optimizer_state=state_bytes,
            ema=weights if run.train.ema else 0,
            gradients_peak=gradients_peak,
            step_peak=step_peak,
            collectives=calls,
            tensors=weight_count * (2 if run.train.ema else 1) + len(state),
        )


def _extrapolate(short: Sequence[Simulation], steps: int) -> Simulation | None:
    """Continue three simulations, each with one more layer, by more layers; None if they are not linear."""
    first, middle, last = short

    def continue_line(values: Sequence[int]) -> int | None:
        step = values[2] - values[1]
        return values[2] + steps * step if abs(values[1] - values[0] - step) <= 0.01 * max(step, 1) else None

    names = ("weights", "optimizer_state", "ema", "gradients_peak", "step_peak", "tensors")
    numbers = {name: continue_line([getattr(each, name) for each in short]) for name in names}
    calls = {
        call: continue_line([each.collectives[call] for each in short])
        for call in first.collectives | middle.collectives | last.collectives
    }
    if None in numbers.values() or None in calls.values():
        return None
    return replace(last, **numbers, collectives=Counter(calls))  # type: ignore[arg-type]


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disable automatic garbage collection, so memory is deterministic; `gc.collect` ignores objects from before."""
    was_enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


class FakeGroup(DistributedContext):
    """Rank 0 of a process group in which collectives do nothing."""

    def __init__(self, layout: ParallelLayout) -> None:
        super().__init__()
        self.layout = layout
        self.mesh = make_mesh(layout, "cpu")
        self._arrived: dict[nn.Parameter, None] = {}  # parameters in the order of their gradients
        self._buckets: list[Tensor] = []

    def shard(self, objective: Objective, precision: Precision = "float32") -> Objective:  # noqa: ARG002
        """Prepare the objective; a sharded objective was sharded before its tensors were allocated.

        The reducer of DistributedDataParallel reads tensor data, so its memory is emulated: one buffer holds all
        gradients, and each gradient moves there as soon as it is computed.
        """
        if self.layout.is_sharded:
            self._root = objective
            return objective
        for parameter in (each for each in objective.parameters() if each.requires_grad):
            self._buckets.append(torch.empty_like(parameter))
            parameter.register_post_accumulate_grad_hook(partial(self._receive, self._buckets[-1]))
        return objective

    def _receive(self, bucket: Tensor, parameter: nn.Parameter) -> None:
        self._arrived[parameter] = None
        parameter.grad = bucket

    def list_bucket_reductions(self) -> list[Collective]:
        """Return the all-reduces of DistributedDataParallel, which buckets gradients in the order they are computed."""
        if self.layout.is_sharded:
            return []
        sizes, limit = list[int](), FIRST_BUCKET
        for parameter in self._arrived:
            size = parameter.numel() * parameter.element_size()
            if sizes and sizes[-1] < limit:
                sizes[-1] += size
            else:
                limit = FIRST_BUCKET if not sizes else BUCKET
                sizes.append(size)
        ranks = self.layout.world_size
        return [Collective("all_reduce", size, ranks, ranks) for size in sizes]


@contextmanager
def _fake_processes(layout: ParallelLayout) -> Iterator[SingleProcess]:
    """Create a process group of this many ranks in which collectives do nothing."""
    if layout.world_size == 1:
        yield SingleProcess()
        return
    if distributed.is_initialized():
        raise RegardError("This process already has a process group.", hint="Plan before or after the run.")
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=layout.world_size)
    try:
        yield FakeGroup(layout)
    finally:
        distributed.destroy_process_group()


def _make_objective(run: RunConfig, processes: SingleProcess) -> Objective:
    """Build the objective on the meta device and shard it as training does."""
    with torch.device("meta"):
        model = build(run.model).train()
        prepare_model(model, run)
    apply_device_settings(model, run)
    objective = Objective.from_run(model, run)
    if isinstance(processes, FakeGroup) and processes.layout.is_sharded:
        assert processes.mesh is not None  # noqa: S101 - set when it was created
        apply_layout(objective, processes.layout, processes.mesh, run.train.precision)
    return objective


def _allocate(objective: Objective) -> None:
    """Replace meta tensors with fake CPU tensors, which are counted; tied weights stay tied."""
    tensors: dict[int, Tensor] = {}
    for module in objective.modules():
        for group in (module._parameters, module._buffers):
            for name, tensor in group.items():
                if tensor is None:
                    continue
                if id(tensor) not in tensors:
                    empty = torch.empty_like(tensor, device="cpu")
                    is_parameter = isinstance(tensor, nn.Parameter)
                    tensors[id(tensor)] = nn.Parameter(empty, tensor.requires_grad) if is_parameter else empty
                group[name] = tensors[id(tensor)]  # type: ignore[assignment]


def _count_local_bytes(tensor: Tensor) -> int:
    """Count the bytes of this rank's share of a tensor."""
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return local.numel() * local.element_size()
