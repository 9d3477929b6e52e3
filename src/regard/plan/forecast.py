"""Compute a forecast from a simulated step: memory, checkpoint size, network traffic, time and cost.

Exact by construction: parameters, optimizer state, collectives, checkpoint bytes. Simulated: the peak of allocated
memory. Ranges: seconds, hours and cost on other devices, between two fractions of their peak FLOPS (MFU) and between
full and no overlap of communication. On this machine the seconds are measured (`probe`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from regard.config.devices import DeviceSpec
from regard.config.run import RunConfig
from regard.plan.simulate import Simulation
from regard.plan.tracker import Collective
from regard.store.size_check import BYTES_PER_PARAMETER, count_parameters
from regard.training.autotune import count_flops
from regard.training.distributed.layout import ParallelLayout

RECOMPUTATION = 4 / 3  # activation checkpointing repeats the forward pass: a third of forward and backward
USABLE_MEMORY = 0.9  # on a GPU; the rest is for the CUDA context, NCCL buffers and fragmentation
OPTIMIZER_PASSES = 7  # fused Adam reads weight, gradient and two moments, and writes all but the gradient
CPU_OVERHEAD = 1.05  # resident bytes of a CPU process per byte of tensors: buffers of kernels and of gloo
CPU_HOLES = 100 * 2**20  # freed bytes that the allocator keeps; both fitted to five runs of 0.5 to 5.5 GB.
# Ranks that share the weights keep none: `distributed.py` lets glibc return freed tensors to the system.
HEADER_BYTES = 120  # of a safetensors header, per tensor
GLOO_REDUCE_SCATTER = 2  # gloo sends twice the share of a reduce-scatter; measured over a virtual network

Range = tuple[float, float]


@dataclass(frozen=True)
class Forecast:
    """The requirements of a run with one layout on one device."""

    name: str
    settings: Mapping[str, Any]  # that choose it
    layout: ParallelLayout
    has_checkpointed_activations: bool
    parameters: int
    simulation: Simulation
    start_bytes: int  # that the first rank holds in main memory before the first step of a tuning run
    is_here: bool  # on this machine, on the CPU
    memory: int  # bytes of the device that tensors may use
    checkpoint_bytes: int
    wire_bytes: int  # that one rank sends per step
    collectives: Counter[str]  # calls per step, by kind
    batches: int  # that a rank computes per step
    flops: float  # of all ranks per step
    steps: int
    transfer: float  # seconds per step that a rank sends, if nothing else limits the links; 0 on this machine
    seconds: Range | None  # per step
    price: Range | None  # USD per device and hour

    @property
    def peak(self) -> int:
        """Peak bytes of a rank: allocated on a device, resident on a CPU (excluding Python and torch)."""
        if not self.is_here:
            return self.simulation.peak
        steps = round(CPU_OVERHEAD * self.simulation.peak) + (0 if self.layout.is_sharded else CPU_HOLES)
        return max(steps, self.start_bytes)  # startup runs no kernels and keeps no buffers

    @property
    def fits(self) -> bool:
        """Whether the run fits into device memory."""
        return self.peak <= self.memory

    @property
    def hours(self) -> Range | None:
        """Duration of the whole run in hours."""
        return None if self.seconds is None else _scale(self.seconds, self.steps / 3600)

    @property
    def cost(self) -> Range | None:
        """Cost of the whole run in USD."""
        if self.hours is None or self.price is None:
            return None
        (few, many), (cheap, dear), ranks = self.hours, self.price, self.layout.world_size
        return (few * cheap * ranks, many * dear * ranks)


def make_forecast(
    run: RunConfig,
    layout: ParallelLayout,
    simulation: Simulation,
    *,
    name: str,
    settings: Mapping[str, Any],
    length: int,
    device: DeviceSpec | None,
    memory: int,
    mfu: Range | None = None,
    price: Range | None = None,
    seconds: float | None = None,
) -> Forecast:
    """Compute the forecast from a simulated step (see `make_plan`).

    Args:
        run, layout, simulation, length: The simulation and its inputs.
        name, settings: The layout's name in tables, and the settings that select it.
        device, memory, mfu, price: As in `make_plan`.
        seconds: Measured CPU-seconds of a rank per step, for this machine.
    """
    batches = count_batches(run, layout)
    flops = (
        count_flops(run, length)
        * run.gradient_accumulation
        * (RECOMPUTATION if run.train.checkpoint_activations else 1)
    )
    calls: Counter[str] = Counter()
    for collective, count in simulation.collectives.items():
        calls[collective.kind] += count
    wire = sum(sent_bytes(call, is_gloo=device is None) * count for call, count in simulation.collectives.items())
    transfer = 0.0
    duration: Range | None = None if seconds is None else (seconds, seconds)
    if device is not None:
        transfer = sum(  # seconds that a rank sends: within a host over its links, else over the network
            count
            * sent_bytes(call)
            / (device.host_bandwidth if call.span <= device.per_host else device.network_bandwidth)
            for call, count in simulation.collectives.items()
        )
        step = OPTIMIZER_PASSES * simulation.weights / device.memory_bandwidth
        # The slowest rank determines the time: it computes `batches` of the step's batches.
        slowest, (low, high) = flops * batches / run.gradient_accumulation / layout.tensor, mfu or device.mfu
        peak = device.peak_flops[run.train.precision]
        duration = (max(slowest / (peak * high), transfer) + step, slowest / (peak * low) + transfer + step)
        price = price or device.price
        memory = round(memory * USABLE_MEMORY)
    return Forecast(
        name=name,
        settings=settings,
        layout=layout,
        has_checkpointed_activations=run.train.checkpoint_activations,
        parameters=count_parameters(run.model),
        simulation=simulation,
        start_bytes=count_start_bytes(run),
        is_here=device is None,
        memory=memory,
        checkpoint_bytes=count_checkpoint_bytes(run, simulation),
        wire_bytes=round(wire),
        collectives=calls,
        batches=batches,
        flops=flops,
        steps=run.train.steps,
        transfer=transfer,
        seconds=duration,
        price=price,
    )


def count_start_bytes(run: RunConfig) -> int:
    """Return the bytes of weights that a fine-tuning run holds at startup: the full parent weights and a copy.

    The parent is assumed to be as large as the model, although its head may differ.
    """
    return 0 if run.finetune is None else 2 * BYTES_PER_PARAMETER * count_parameters(run.model)


def count_batches(run: RunConfig, layout: ParallelLayout) -> int:
    """Return the number of batches that a rank computes per step; a step sums over all data ranks."""
    return -(-run.gradient_accumulation // layout.data_world_size)


def sent_bytes(collective: Collective, *, is_gloo: bool = False) -> float:
    """Return the bytes that one rank sends in a collective, by the ring algorithms.

    >>> sent_bytes(Collective("all_reduce", 1000, ranks=4, span=4))
    1500.0
    """
    share = collective.size * (collective.ranks - 1) / collective.ranks
    match collective.kind:
        case "all_reduce":
            return 2 * share
        case "reduce_scatter":
            return GLOO_REDUCE_SCATTER * share if is_gloo else share
        case "all_gather":
            return share
        case "broadcast":
            return float(collective.size)
        case _:
            return 0.0


def count_checkpoint_bytes(run: RunConfig, simulation: Simulation) -> int:
    """Return the checkpoint size on disk in bytes: weights, optimizer state and EMA of all ranks."""
    weights = count_parameters(run.model) * BYTES_PER_PARAMETER
    shares = 1 + simulation.optimizer_state / simulation.weights + bool(run.train.ema)
    return round(weights * shares) + HEADER_BYTES * simulation.tensors


def _scale(values: Range, factor: float) -> Range:
    return (values[0] * factor, values[1] * factor)
