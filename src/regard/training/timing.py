"""Where the time of a run goes: seconds per step, waits, memory and MFU of every rank.

Each rank measures its steps; every 50 steps, the ranks exchange the means in one collective and rank 0 writes them to
`timing.jsonl`. A rank waits for the others at the start and the end of a step and, with DDP, from its last gradient to
the end of the backward pass. With FSDP2 the ranks gather each layer together, and on GPUs the backward pass runs
asynchronously: such waits are part of `work_seconds`, so compare `cpu_seconds` or record a profile.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch

from regard.base.limits import measure_peak_memory
from regard.config.devices import find_peak_flops
from regard.config.model import AnyModelConfig
from regard.config.run import RunConfig
from regard.data.batches.batch import Batch
from regard.data.batches.loader import StepBatches
from regard.models.cost import count_training_flops
from regard.training.device import synchronize
from regard.training.distributed.processes import SingleProcess
from regard.training.events import Timed

INTERVAL = 50  # steps between lines of timing.jsonl
DIGITS = 4  # significant digits of a figure
PRODUCT_SIZES = {"cpu": 512, "cuda": 8192}  # rows of the matrices of a measured product
PRODUCTS = 5
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass
class RankTiming:
    """Figures of a rank; seconds are means per step."""

    seconds: float = 0.0  # of a step, with the wait for its batches
    data_seconds: float = 0.0  # waiting for the next batches
    wait_seconds: float = 0.0  # waiting for other ranks
    cpu_seconds: float = 0.0  # of all threads of the process
    memory_bytes: float = 0.0  # peak: allocated on the device, or resident on a CPU
    flops: float = 0.0  # of the model, padding included


class RunTimer:
    """Measures the steps of this rank and collects the figures of all ranks.

    Args:
        run: Settings of the run.
        processes: The process group.
        device: The device of this rank.
    """

    def __init__(self, run: RunConfig, processes: SingleProcess, device: torch.device) -> None:
        self._model, self._precision = run.model, run.train.precision
        self._processes, self._device = processes, device
        self._sums, self._steps, self._tokens = RankTiming(), 0, 0
        self._start = self._cpu_start = self._waited = self._data_seconds = 0.0
        self._peak: float | None = None

    def time_data(self, steps: Iterable[StepBatches]) -> Iterator[StepBatches]:
        """Yield the batches of each step, and measure how long the rank waits for them."""
        iterator = iter(steps)
        while True:
            self._start, self._cpu_start = time.perf_counter(), time.process_time()
            self._waited = self._processes.waited_seconds
            step = next(iterator)
            self._data_seconds = time.perf_counter() - self._start
            yield step

    def finish_step(self, batches: Sequence[Batch], input_tokens: int) -> None:
        """Add a step that has just ended; steps that were skipped are left out."""
        sums = self._sums
        sums.seconds += time.perf_counter() - self._start
        sums.data_seconds += self._data_seconds
        sums.wait_seconds += self._processes.waited_seconds - self._waited
        sums.cpu_seconds += time.process_time() - self._cpu_start
        sums.flops += count_flops_of_batches(self._model, batches)
        self._steps, self._tokens = self._steps + 1, self._tokens + input_tokens

    def collect(self, step: int) -> Timed:
        """Return the means of all ranks since the last call, which all ranks make together."""
        count = max(self._steps, 1)
        own = RankTiming(*(getattr(self._sums, field.name) / count for field in fields(RankTiming)))
        is_gpu = self._device.type == "cuda"
        own.memory_bytes = torch.cuda.max_memory_allocated(self._device) if is_gpu else measure_peak_memory() or 0
        ranks = [RankTiming(**figures) for figures in self._processes.all_gather(asdict(own))]
        if self._peak is None:
            name = torch.cuda.get_device_name(self._device) if is_gpu else ""
            self._peak = find_peak_flops(name, self._precision) or measure_peak_flops(self._device, self._precision)
        work = [rank.seconds - rank.wait_seconds for rank in ranks]
        seconds = max(rank.seconds for rank in ranks)
        flops = sum(rank.flops for rank in ranks) / self._processes.tensor_ranks  # whose ranks share the batches
        timed = Timed(
            step=step,
            tokens=self._tokens / count,
            mfu=_round(flops / max(seconds, 1e-9) / (self._peak * len(ranks))),
            peak_flops=_round(self._peak),
            slowest_rank=max(range(len(ranks)), key=work.__getitem__),
            seconds=_round_all(rank.seconds for rank in ranks),
            data_seconds=_round_all(rank.data_seconds for rank in ranks),
            wait_seconds=_round_all(rank.wait_seconds for rank in ranks),
            work_seconds=_round_all(work),
            cpu_seconds=_round_all(rank.cpu_seconds for rank in ranks),
            memory_bytes=tuple(int(rank.memory_bytes) for rank in ranks),
        )
        self._sums, self._steps, self._tokens = RankTiming(), 0, 0
        return timed


def count_flops_of_batches(model: AnyModelConfig, batches: Sequence[Batch]) -> float:
    """Count the FLOPs of forward and backward through batches."""
    return float(sum(count_training_flops(model, *_measure_batch(model, batch)).total() for batch in batches))


def _measure_batch(model: AnyModelConfig, batch: Batch) -> tuple[int, int, int]:
    """Return the rows of a batch, and the lengths of source and target."""
    inputs: Any = getattr(model, "source", None)
    rows, source = batch.labels.size(0), 0
    if batch.source is not None:
        sizes = {2: (1,), 3: (1,), 4: (2, 3)}[batch.source.dim()]  # of tokens, frames, or height and width
        lengths = [batch.source.size(dimension) for dimension in sizes]
        source = lengths[0] if batch.source.dim() == 2 else inputs.count_vectors(*lengths)
        if batch.source.dim() == 4 and batch.positions is not None:
            source = batch.positions.size(-1)  # the visible patches
    target = 0 if batch.target is None or batch.target_valid is not None else batch.target.size(1)
    return rows * (1 if batch.target_valid is None else 2), source, target  # an encoder reads both sides of pairs


def measure_peak_flops(device: torch.device, precision: str) -> float:
    """Measure the FLOPs per second of a large matrix product, for a device without a data sheet in our table."""
    size = PRODUCT_SIZES.get(device.type, 2048)
    matrix = torch.ones(size, size, dtype=DTYPES[precision], device=device)
    times = []
    for _ in range(PRODUCTS + 1):  # the first one warms up
        synchronize(device)
        start = time.perf_counter()
        matrix @ matrix
        synchronize(device)
        times.append(time.perf_counter() - start)
    return 2 * size**3 / max(min(times[1:]), 1e-9)


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _round_all(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(_round(value) for value in values)
