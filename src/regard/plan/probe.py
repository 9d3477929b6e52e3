"""Measure the CPU-seconds of a step on this machine with a few real training steps."""

import time
from dataclasses import dataclass

import torch

from regard.base import cpu_fast_path
from regard.config.run import RunConfig
from regard.plan.forecast import count_batches, sent_bytes
from regard.plan.simulate import Simulation
from regard.store.size_check import check_fits_memory
from regard.tasks.task import find_task
from regard.training.autotune import StepTimer
from regard.training.device import resolve_device
from regard.training.distributed.layout import ParallelLayout

MAX_BATCH_SECONDS = 8.0  # of a batch that is timed whole; of a slower one, some rows
# CPU-seconds of a rank for each byte that gloo sends to another on the same host: of the gradients of DDP, and of the
# weights and gradients of FSDP2, which are also copied into buffers and out of them, in pages that the system clears.
# Fitted to `lm_ddp` and `lm_fsdp` of `bench.plan`.
REDUCED_BYTE, SHARDED_BYTE = 1.9e-9, 5.3e-9


@dataclass(frozen=True)
class Probe:
    """Measured CPU-seconds of one process."""

    batch: float  # forward and backward through one batch
    step: float  # one optimizer step

    def count_seconds(self, run: RunConfig, layout: ParallelLayout, simulation: Simulation) -> float:
        """Return the CPU-seconds of one step on a rank with the most batches."""
        shares = layout.shards * layout.tensor
        exchange = sum(
            sent_bytes(call, is_gloo=True) * count * (REDUCED_BYTE if call.kind == "all_reduce" else SHARDED_BYTE)
            for call, count in simulation.collectives.items()
        )
        batches = count_batches(run, layout) * self.batch / layout.tensor
        return batches + self.step / shares + exchange


def probe(run: RunConfig, *, rows: int, length: int) -> Probe:
    """Time forward, backward and optimizer step of a synthetic batch."""
    run = resolve_device(run)
    check_fits_memory(run.model, location="the model")
    threads = torch.get_num_threads()
    if run.device.threads is not None:
        torch.set_num_threads(run.device.threads)
    try:
        with torch.random.fork_rng(), cpu_fast_path.enabled(run.device.cpu_fast_path):
            timer = StepTimer(
                run,
                find_task(run.model.task).synthetic_batch(run, rows, length),
                max_seconds=MAX_BATCH_SECONDS,
                max_tuning_seconds=0.0,
                clock=time.process_time,
            )
            return Probe(*timer.time_parts())
    finally:
        torch.set_num_threads(threads)
