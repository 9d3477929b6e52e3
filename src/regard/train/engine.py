"""One update: the gradients of its batches, and the step that follows if they are sound.

Chance comes from (seed, epoch, global batch), set anew before every batch: it does not matter who computes the batch,
after which other batches, or whether the run was stopped in between. The loss is divided by the tokens of the whole
update, so that it does not matter how the update is cut into batches.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.data.batch import Batch
from regard.data.noise import make_key
from regard.train.objective import Objective
from regard.train.optim import Optimizers
from regard.train.precision import Precision, Scaler, computing

DROPOUT = 17  # what a key is for: never the one of the data's order or noise


@dataclass(frozen=True)
class Gradients:
    """What an update would learn, before it does."""

    loss: float  # per token
    negative_log_likelihood: float  # per token, without smoothing
    tokens: int
    norm: float  # of all gradients together, before clipping
    overflowed: bool = False  # float16 was scaled too far: the next scale is smaller, and nothing else is wrong


class Engine:
    """Computes updates on one device."""

    def __init__(
        self,
        objective: Objective,
        optimizers: Optimizers,
        *,
        seed: int,
        clip: float = 0.0,
        precision: Precision = "float32",
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.objective = objective
        self.optimizers = optimizers
        self.device = next(objective.model.parameters()).device
        self.scaler = Scaler(self.device.type, precision)
        self._parameters = list(objective.model.parameters())
        self._seed, self._clip, self._precision, self._say = seed, clip, precision, say

    def gradients(self, batches: Sequence[Batch], epoch: int) -> Gradients:
        """Forward and backward through all batches; where memory runs out, again in smaller parts."""
        parts = 1
        while True:
            try:
                return self._accumulated(batches, epoch, parts)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            # The half-made gradients are thrown away: which of them a failed backward pass reached, nobody knows.
            self.optimizers.zero_grad()
            rows = max(batch.labels.size(0) for batch in batches)
            if parts >= rows:
                raise RegardError(
                    "There is not enough memory for a single row of a batch.",
                    fix="Make data.longest smaller, set train.recompute = true, or take a smaller model.",
                )
            parts = min(2 * parts, rows)
            self._say(f"Memory ran out: the update is computed again with each batch in {parts} parts.")

    def step(self, rate: float) -> None:
        """Let the weights learn what the gradients say."""
        self.optimizers.set_rate(rate)
        self.optimizers.step()
        self.optimizers.zero_grad()

    def refuse(self) -> None:
        """Forget the gradients: the weights stay as they are."""
        self.optimizers.zero_grad()

    def _accumulated(self, batches: Sequence[Batch], epoch: int, parts: int) -> Gradients:
        tokens = sum(batch.label_count for batch in batches)
        loss = torch.zeros((), dtype=torch.float64)
        likelihood = torch.zeros((), dtype=torch.float64)
        for batch in batches:
            for number, piece in enumerate(cut_rows(batch, parts)):
                seed_batch(self._seed, epoch, batch.number, number)
                with computing(self.device.type, self._precision):
                    found = self.objective(piece)
                self.scaler.scale(found.total / max(tokens, 1)).backward()
                loss += found.total.detach().cpu().double()  # in this order: not every device has float64
                likelihood += found.negative_log_likelihood.cpu().double()
        scaled = self.scaler.state().get("scale", 0.0) > 1  # at 1 or less it is not the scale that is too large
        self.scaler.unscale(self.optimizers)
        self.scaler.update()
        norm = self._clipped()
        count = max(tokens, 1)
        mean = loss.item() / count
        overflowed = scaled and math.isfinite(mean) and not math.isfinite(norm)
        return Gradients(mean, likelihood.item() / count, tokens, norm, overflowed)

    def _clipped(self) -> float:
        if self._clip:
            return nn.utils.clip_grad_norm_(self._parameters, self._clip).item()
        grads = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        return nn.utils.get_total_norm(grads).item()


def seed_batch(seed: int, epoch: int, batch: int | None, part: int = 0) -> None:
    """Let torch's generator begin anew for this batch."""
    if batch is None:
        return
    bits = int(make_key(seed, DROPOUT, epoch, batch, part)[0] >> 1)
    torch.default_generator.manual_seed(bits)  # `torch.manual_seed` looks for devices, half a millisecond each time
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(bits)
    elif torch.backends.mps.is_available():
        torch.mps.manual_seed(bits)


def cut_rows(batch: Batch, parts: int) -> Iterator[Batch]:
    """The rows of a batch in so many parts, or fewer if there are fewer rows.

    >>> whole = Batch(0, torch.arange(5), torch.arange(5), torch.zeros(5))
    >>> [part.labels.tolist() for part in cut_rows(whole, 2)]
    [[0, 1, 2], [3, 4]]
    """
    if parts == 1:
        yield batch
        return
    rows = batch.labels.size(0)
    size = -(-rows // parts)
    for begin in range(0, rows, size):
        taken: dict[str, Any] = {}
        for field in fields(batch):
            value = getattr(batch, field.name)
            if isinstance(value, Tensor) and field.name not in ("samples", "languages"):
                taken[field.name] = value[begin : begin + size]
        yield replace(batch, **taken)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether this is a device's or the machine's memory that ran out; CPUs have no error of their own for it."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
