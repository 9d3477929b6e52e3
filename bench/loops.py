"""Training loops over the same model and data: Regard's own, a bare one, and one with torch's standard modules.

Each call makes one step. All loops cycle through the same steps in the same order.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench import minimal_models
from regard.base.labels import IGNORE_INDEX
from regard.config.training import AdamConfig
from regard.data.batches.batch import Batch, drop_trivial_masks
from regard.data.batches.loader import Loader, StepBatches
from regard.models.build import AnyModel
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.heads import LMHead
from regard.models.loss.token import token_loss
from regard.training.events import Event, StepFinished
from regard.training.step import StepRunner, StepStats, seed_batch
from regard.training.trainer import Trainer

ADAM = AdamConfig()


class RegardLoop:
    """The trainer's steps, data loading included: batches are built from the shards each time."""

    def __init__(self, trainer: Trainer, events: list[Event], steps: int) -> None:
        self.trainer, self.events, self._steps = trainer, events, steps
        self._calls = 0
        self.rewind()

    def rewind(self) -> None:
        """Restart the data."""
        self._step_iterator = _cycle_steps(self.trainer.loader, self._steps)

    def __call__(self) -> None:
        """Make one step."""
        self._calls += 1
        self.trainer._step(next(self._step_iterator))

    @property
    def last_event(self) -> StepFinished:
        """The event of the last step; after a loss spike there is another kind of event."""
        event = self.events[-1]
        if not isinstance(event, StepFinished) or event.step != self._calls:
            raise SystemExit(f"The trainer skipped a step: {event}.")
        return event


class IdleStepRunner(StepRunner):
    """An updater that computes nothing: what is left of a step is the trainer's overhead."""

    def compute_gradients(self, batches: Sequence[Batch], epoch: int) -> StepStats:
        """Seed the batches; return random losses with as many digits as usual, and the true number of tokens."""
        for batch in batches:
            seed_batch(self._seed, epoch, batch.number)
        loss, gradient_norm = random.uniform(4.0, 4.1), random.uniform(1.0, 2.0)  # noqa: S311
        tokens, input_tokens = sum(batch.label_count for batch in batches), sum(batch.input_count for batch in batches)
        return StepStats(loss, loss, tokens, input_tokens, gradient_norm)

    def step(self, learning_rate: float) -> None:
        """Do nothing."""


def make_idle_step_runner(trainer: Trainer) -> StepRunner:
    """Create an idle updater to replace the trainer's own."""
    return IdleStepRunner(trainer.objective, trainer.step_runner.optimizers, seed=0)


@dataclass(frozen=True)
class PreparedBatch:
    """A batch with everything precomputed that does not belong to the timed loop."""

    original: Batch  # as the loader built it
    simplified: Batch  # without masks that mask nothing
    label_positions: Tensor | None  # (N) positions with a label; None: all
    labels: Tensor  # (N)


def prepare_batch(batch: Batch) -> PreparedBatch:
    """Prepare a batch for the bare loop."""
    flat = batch.labels.flatten()  # (B T)
    label_positions = (flat != IGNORE_INDEX).nonzero()[:, 0]
    return PreparedBatch(
        batch,
        drop_trivial_masks(batch),
        None if label_positions.numel() == flat.numel() else label_positions,
        flat[label_positions],
    )


def prebuild_steps(loader: Loader, steps: int) -> list[list[PreparedBatch]]:
    """Build the first steps of a loader in memory."""
    return [[prepare_batch(batch) for batch in step.batches] for step in islice(loader.steps(), steps)]


class BareLoop:
    """A minimal training loop: forward, backward, clip, step. No logging, no files, no seeding."""

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[PreparedBatch], Tensor],  # summed over a batch
        steps: Sequence[Sequence[PreparedBatch]],
        learning_rate: float,
        clip: float,
    ) -> None:
        self.model, self.loss, self.steps, self._clip = model, loss, steps, clip
        self._parameters = list(model.parameters())
        self._optimizer = torch.optim.Adam(
            self._parameters, lr=learning_rate, betas=ADAM.betas, eps=ADAM.eps, fused=True
        )
        self.rewind()

    def rewind(self) -> None:
        """Restart the data."""
        self._calls = 0

    def __call__(self, seed: int | None = None) -> tuple[Tensor, Tensor]:
        """Make one step; return its loss and gradient norm. With a seed, dropout is the same as in Regard's loop."""
        step = self.steps[self._calls % len(self.steps)]
        self._calls += 1
        tokens = sum(prepared.labels.numel() for prepared in step)
        total = torch.zeros(())
        for prepared in step:
            if seed is not None:
                seed_batch(seed, 0, prepared.original.number)
            loss = self.loss(prepared) / tokens
            loss.backward()
            total += loss.detach()
        norm = nn.utils.clip_grad_norm_(self._parameters, self._clip)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return total, norm


def make_kernel_loss(model: AnyModel, label_smoothing: float, logit_rows: int) -> Callable[[PreparedBatch], Tensor]:
    """Create the loss function of a model of Regard, with the same calls as the trainer."""
    head = cast("LMHead", model.head)

    def loss(prepared: PreparedBatch) -> Tensor:
        batch = prepared.simplified
        if isinstance(model, EncoderDecoder):
            assert batch.source is not None and batch.target is not None  # noqa: S101, PT018
            x = model.hidden_states(batch.source, batch.target, batch.source_valid)  # (B, T, D)
        else:
            assert isinstance(model, DecoderOnly) and batch.target is not None  # noqa: S101, PT018
            x = model.hidden_states(batch.target, positions=batch.positions, documents=batch.documents)
        x = x.flatten(0, 1)  # (B T, D)
        if prepared.label_positions is not None:
            x = x.index_select(0, prepared.label_positions)  # (N, D)
        return token_loss(x, prepared.labels, head.projection.weight, head.bias, label_smoothing, logit_rows).total

    return loss


def make_plain_loss(model: nn.Module, label_smoothing: float) -> Callable[[PreparedBatch], Tensor]:
    """Create the loss function of a minimal model, over the logits of all positions, padding included."""

    def loss(prepared: PreparedBatch) -> Tensor:
        batch = prepared.original
        if isinstance(model, minimal_models.Translator):
            logits = model(batch.source, batch.target, batch.source_valid)  # (B, T, V)
        else:
            logits = model(batch.target)
        return F.cross_entropy(
            logits.flatten(0, 1),
            batch.labels.flatten(),
            ignore_index=IGNORE_INDEX,
            label_smoothing=label_smoothing,
            reduction="sum",
        )

    return loss


def _cycle_steps(loader: Loader, steps: int) -> Iterator[StepBatches]:
    while True:
        yield from islice(loader.steps(), steps)
