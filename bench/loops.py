"""Loops that train the same model on the same data: Regard's own, a bare one, and one of plain torch pieces.

Each is called once for an update. All walk through the same updates in the same order, and begin again together.
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
from regard.config.training import Adam
from regard.data.batches.arrays import IGNORE_INDEX
from regard.data.batches.batch import Batch
from regard.data.batches.loader import Loader, Update
from regard.models.build import AnyModel
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.heads import LMHead
from regard.train.engine import Updater, UpdateStats, seed_batch
from regard.train.events import Event, Updated
from regard.train.loss import token_loss
from regard.train.objective import _drop_trivial_masks
from regard.train.trainer import Trainer

ADAM = Adam()


class RegardLoop:
    """The trainer's updates, and what comes before them: batches are built from the shards each time."""

    def __init__(self, trainer: Trainer, events: list[Event], updates: int) -> None:
        self.trainer, self.events, self._updates = trainer, events, updates
        self._calls = 0
        self.rewind()

    def rewind(self) -> None:
        """Let the data begin anew."""
        self._update_iterator = _cycle_updates(self.trainer.loader, self._updates)

    def __call__(self) -> None:
        """One update."""
        self._calls += 1
        self.trainer._update(next(self._update_iterator))

    @property
    def last_event(self) -> Updated:
        """What the last update told its listeners; a spike would have been told instead."""
        event = self.events[-1]
        if not isinstance(event, Updated) or event.update != self._calls:
            raise SystemExit(f"The trainer did not make every update: {event}.")
        return event


class IdleUpdater(Updater):
    """An engine that computes nothing: what is left of an update is what the trainer does around it."""

    def compute_gradients(self, batches: Sequence[Batch], epoch: int) -> UpdateStats:
        """Seeds, numbers with as many digits as real ones, and the real count of tokens."""
        for batch in batches:
            seed_batch(self._seed, epoch, batch.number)
        loss, gradient_norm = random.uniform(4.0, 4.1), random.uniform(1.0, 2.0)  # noqa: S311
        return UpdateStats(loss, loss, sum(batch.label_count for batch in batches), gradient_norm)

    def step(self, learning_rate: float) -> None:
        """Nobody learns."""


def make_idle_updater(trainer: Trainer) -> Updater:
    """In the place of the trainer's engine."""
    return IdleUpdater(trainer.objective, trainer.updater.optimizers, seed=0)


@dataclass(frozen=True)
class PreparedBatch:
    """A batch with everything worked out that can be before the clock runs."""

    original: Batch  # as the loader built it
    simplified: Batch  # without masks that hide nothing
    label_positions: Tensor | None  # (N) where something must come out; None is everywhere
    labels: Tensor  # (N)


def prepare_batch(batch: Batch) -> PreparedBatch:
    """A bare loop's batch."""
    flat = batch.labels.flatten()  # (B T)
    label_positions = (flat != IGNORE_INDEX).nonzero()[:, 0]
    return PreparedBatch(
        batch,
        _drop_trivial_masks(batch),
        None if label_positions.numel() == flat.numel() else label_positions,
        flat[label_positions],
    )


def prebuild_updates(loader: Loader, updates: int) -> list[list[PreparedBatch]]:
    """The first updates of a loader, all of them in memory."""
    return [[prepare_batch(batch) for batch in update.batches] for update in islice(loader.updates(), updates)]


class BareLoop:
    """What one writes without a library: forward, backward, clip, step. No records, no files, no seeds."""

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[PreparedBatch], Tensor],  # summed over a batch
        updates: Sequence[Sequence[PreparedBatch]],
        learning_rate: float,
        clip: float,
    ) -> None:
        self.model, self.loss, self.updates, self._clip = model, loss, updates, clip
        self._parameters = list(model.parameters())
        self._optimizer = torch.optim.Adam(
            self._parameters, lr=learning_rate, betas=ADAM.betas, eps=ADAM.eps, fused=True
        )
        self.rewind()

    def rewind(self) -> None:
        """Let the data begin anew."""
        self._calls = 0

    def __call__(self, seed: int | None = None) -> tuple[Tensor, Tensor]:
        """One update: its loss and the norm of its gradient. With a seed, dropout draws as it does in Regard's."""
        update = self.updates[self._calls % len(self.updates)]
        self._calls += 1
        tokens = sum(prepared.labels.numel() for prepared in update)
        total = torch.zeros(())
        for prepared in update:
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
    """The loss of a model of Regard's, by the same calls that the trainer ends up with."""
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
    """The loss of a lean model, over the logits of all places, padding included."""

    def loss(prepared: PreparedBatch) -> Tensor:
        batch = prepared.original
        if isinstance(model, minimal_models.Translator):
            logits = model(batch.source, batch.target, batch.source_valid)  # (B, T, words)
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


def _cycle_updates(loader: Loader, updates: int) -> Iterator[Update]:
    while True:
        yield from islice(loader.updates(), updates)
