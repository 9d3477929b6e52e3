"""One training step: accumulate the gradients of its batches, then step the optimizer.

The random generator is seeded from (seed, epoch, global batch) before every batch, so results do not depend on the
process that computes a batch, on earlier batches or on interruptions. The loss is divided by the tokens of the whole
step, so results do not depend on how the step is split into batches.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from regard.base.errors import RegardError, RetryError
from regard.base.keyed_random import make_key
from regard.base.labels import IGNORE_INDEX
from regard.data.batches.batch import Batch
from regard.training.distributed.processes import SingleProcess
from regard.training.objective import Objective
from regard.training.optim import Optimizers
from regard.training.precision import GradScaler, Precision, autocast

DROPOUT_KEY = 17  # random key for dropout; data order and noise use other keys


@dataclass(frozen=True)
class StepStats:
    """Loss and gradient norm of a step, before the optimizer step."""

    loss: float  # per token
    negative_log_likelihood: float  # per token, without smoothing
    tokens: int  # with a label
    input_tokens: int  # that the model read: source and target, without padding
    gradient_norm: float  # over all parameters, before clipping
    has_overflowed: bool = False  # the float16 loss scale was too large; it has been halved


class OutOfMemoryError(RetryError):
    """One of several ranks ran out of memory: all ranks stop, and the resumed run splits every batch."""

    def __init__(self, rank: int, micro_batches: int) -> None:
        message = f"Rank {rank} ran out of memory."
        hint = f"Resume to compute each batch in {micro_batches} micro-batches, or reduce data.batch_tokens."
        super().__init__(message, hint=hint)
        self.micro_batches = micro_batches


class StepRunner:
    """Computes steps on one device.

    Args:
        objective: The loss to minimize.
        optimizers: Optimizers over the parameters of the objective's model.
        seed: Seed of dropout.
        clip: Maximum gradient norm; 0 disables clipping.
        precision: Precision of matrix products.
        warn: Called with a message when memory runs out and batches are split.
        processes: The process group that shares the batches of a step.
        micro_batches: Initial number of micro-batches per batch.
    """

    def __init__(
        self,
        objective: Objective,
        optimizers: Optimizers,
        *,
        seed: int,
        clip: float = 0.0,
        precision: Precision = "float32",
        warn: Callable[[str], None] = lambda _: None,
        processes: SingleProcess | None = None,
        micro_batches: int = 1,
    ) -> None:
        self.objective = objective
        self.optimizers = optimizers
        self.processes = processes or SingleProcess()
        self._parameters = list(objective.parameters())
        self.device = self._parameters[0].device
        self.scaler = GradScaler(self.device.type, precision)
        self._seed, self._clip, self._precision, self._warn = seed, clip, precision, warn
        self.micro_batches = micro_batches

    def compute_gradients(self, batches: Sequence[Batch], epoch: int) -> StepStats:
        """Run forward and backward for all batches; if memory runs out, retry with smaller micro-batches.

        Raises:
            RegardError: If a single row does not fit into memory.
            OutOfMemoryError: If one of several ranks runs out of memory, because it cannot retry the step alone.
        """
        micro_batches = self.micro_batches
        while True:
            try:
                return self._accumulate(batches, epoch, micro_batches)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            # Discard partial gradients: a failed backward pass may have reached any of them.
            self.optimizers.zero_grad()
            if not all(batch.is_divisible for batch in batches):
                raise RegardError(
                    "Out of memory: a contrastive batch cannot be split, because its loss compares all pairs.",
                    hint="Reduce data.batch_tokens (fewer negatives), or set train.checkpoint_activations = true.",
                )
            rows = max(batch.labels.size(0) for batch in batches)
            if micro_batches >= rows:
                raise RegardError(
                    "Out of memory: a single row of a batch does not fit.",
                    hint="Reduce data.max_length, set train.checkpoint_activations = true, or use a smaller model.",
                )
            micro_batches = min(2 * micro_batches, rows)
            if self.processes.world_size > 1:
                raise OutOfMemoryError(self.processes.rank, micro_batches)
            self._warn(f"Out of memory: retrying the step with {micro_batches} micro-batches per batch.")

    def step(self, learning_rate: float) -> None:
        """Step the optimizer with this learning rate and zero the gradients."""
        self.optimizers.set_learning_rate(learning_rate)
        self.optimizers.step()
        self.optimizers.zero_grad()

    def discard(self) -> None:
        """Zero the gradients without a step."""
        self.optimizers.zero_grad()

    def _accumulate(self, batches: Sequence[Batch], epoch: int, micro_batches: int) -> StepStats:
        processes = self.processes
        label_counts, input_counts = [batch.label_count for batch in batches], [batch.input_count for batch in batches]
        tokens, input_tokens = (int(count) for count in processes.sum([sum(label_counts), sum(input_counts)]))
        count = max(tokens, 1)
        loss = torch.zeros((), dtype=torch.float64)
        negative_log_likelihood = torch.zeros((), dtype=torch.float64)
        for number, batch in enumerate(batches, start=1):
            batch_rows = list(cut_rows(batch, micro_batches))
            if processes.world_size > 1:  # every rank runs the same number of passes
                batch_rows += [_without_labels(batch_rows[0])] * (micro_batches - len(batch_rows))
            for index, part in enumerate(batch_rows):
                seed_batch(self._seed, epoch, batch.number, index)
                with processes.accumulate(is_last=number == len(batches) and index == len(batch_rows) - 1):
                    with autocast(self.device.type, self._precision):
                        loss_sums = self.objective(part)
                    self.scaler.scale(loss_sums.total / count).backward()
                loss += loss_sums.total.detach().cpu().double()  # to the CPU first: not every device has float64
                negative_log_likelihood += loss_sums.negative_log_likelihood.cpu().double()
        is_scaled = self.scaler.state_dict().get("scale", 0.0) > 1  # a scale of 1 or less cannot cause an overflow
        self.scaler.unscale(self.optimizers)
        self.scaler.update()
        gradient_norm = processes.clip_gradients(self._parameters, self._clip)
        mean_loss, mean_likelihood = (
            value / count for value in processes.sum([loss.item(), negative_log_likelihood.item()])
        )
        has_overflowed = is_scaled and math.isfinite(mean_loss) and not math.isfinite(gradient_norm)
        return StepStats(
            mean_loss,
            mean_likelihood,
            tokens,
            input_tokens,
            gradient_norm,
            has_overflowed,
        )


def seed_batch(seed: int, epoch: int, batch: int | None, part: int = 0) -> None:
    """Seed torch's random generators for a micro-batch; an empty batch (None) needs no seed."""
    if batch is None:
        return
    batch_seed = int(make_key(seed, DROPOUT_KEY, epoch, batch, part)[0] >> 1)
    torch.default_generator.manual_seed(batch_seed)  # `torch.manual_seed` probes devices: 0.5 ms per call
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(batch_seed)
    elif torch.backends.mps.is_available():
        torch.mps.manual_seed(batch_seed)


def _without_labels(batch: Batch) -> Batch:
    """Return a one-row batch that does not contribute to the loss or its gradient."""
    row = next(cut_rows(batch, batch.labels.size(0)))
    return replace(row, labels=torch.full_like(row.labels, IGNORE_INDEX))


def cut_rows(batch: Batch, micro_batches: int) -> Iterator[Batch]:
    """Split a batch by rows into `micro_batches`, or fewer if it has fewer rows.

    >>> whole = Batch(0, torch.arange(5), torch.arange(5), torch.zeros(5))
    >>> [part.labels.tolist() for part in cut_rows(whole, 2)]
    [[0, 1, 2], [3, 4]]
    """
    if micro_batches == 1:
        yield batch
        return
    rows = batch.labels.size(0)
    size = -(-rows // micro_batches)
    for start in range(0, rows, size):
        slices: dict[str, Any] = {}
        for field in fields(batch):
            value = getattr(batch, field.name)
            if isinstance(value, Tensor) and field.name not in ("samples", "languages"):
                slices[field.name] = value[start : start + size]
        yield replace(batch, **slices)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether the error is an out-of-memory error; torch has no error class for the CPU."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
