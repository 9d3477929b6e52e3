"""The training objective: the loss of the task as one module.

The whole loss is one `nn.Module.forward`, so data and tensor parallelism can wrap this module and reach every weight
that the loss uses.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.base.errors import RegardError
from regard.config.run import RunConfig
from regard.data.batches.batch import Batch, drop_trivial_masks
from regard.models.build import AnyModel
from regard.models.heads import compute_labeled_logits
from regard.models.loss.sums import LossSettings, LossSums
from regard.tasks.task import Task, find_task
from regard.training.compile import compile_layers
from regard.training.extensions import LossFunction


class Objective(nn.Module):
    """The loss of a task, summed over all labeled positions of a batch.

    In evaluation mode the loss is cross-entropy without label smoothing or compilation.

    Args:
        model: The model to train.
        task: Its task.
        label_smoothing: Probability mass spread uniformly over the vocabulary.
        logit_rows: Number of logit rows in memory at a time; 0 for all.
        should_compile: Compile the layers with torch.compile.
        options: Task options.
        loss: Replaces the loss of the task in training mode (`regard.training.extensions.LossFunction`).
    """

    def __init__(
        self,
        model: AnyModel,
        task: Task,
        *,
        label_smoothing: float = 0.0,
        logit_rows: int = 0,
        should_compile: bool = False,
        options: object = None,
        loss: LossFunction | None = None,
    ) -> None:
        super().__init__()
        self.model, self.task, self.options = model, task, options
        self.label_smoothing, self.logit_rows, self.loss = label_smoothing, logit_rows, loss
        self.is_compiled = should_compile
        if should_compile:
            compile_layers(model)

    @classmethod
    def from_run(
        cls, model: AnyModel, run: RunConfig, *, should_compile: bool = False, loss: LossFunction | None = None
    ) -> "Objective":
        """Return the objective of a run."""
        return cls(
            model,
            find_task(run.model.task),
            label_smoothing=run.train.label_smoothing,
            logit_rows=run.device.logit_rows or 0,
            should_compile=should_compile,
            options=run.options,
            loss=loss,
        )

    @property
    def settings(self) -> LossSettings:
        """Settings of the loss computation."""
        return LossSettings(self.label_smoothing if self.training else 0.0, self.logit_rows, not self.training)

    def forward(self, batch: Batch) -> LossSums:
        """Return the loss sums of a batch, and in evaluation mode classifier predictions or vectors.

        Moves the batch to the model's device.
        """
        if self.loss is None or not self.training:
            return self.task.loss(self, batch)
        x, valid = self.read(drop_trivial_masks(batch))
        logits, labels = compute_labeled_logits(self.model.head, x, batch.labels, valid)  # (N, C), (N)
        losses = self.loss(logits, labels)
        if losses.shape != labels.shape:
            message = f"`loss` must return one value per label, shape {tuple(labels.shape)}, not {tuple(losses.shape)}."
            raise RegardError(message, hint='Leave out the mean, for example with reduction="none".')
        with torch.no_grad():
            likelihood = F.cross_entropy(logits, labels, reduction="sum")
            correct = (logits.argmax(dim=-1) == labels).sum()
        return LossSums(losses.sum(), likelihood, correct)

    if TYPE_CHECKING:
        __call__ = forward

    def read(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return the hidden states that the head reads, (B, T, D), and their padding mask."""
        return self.model.read_batch(batch.to(next(self.model.parameters()).device))
