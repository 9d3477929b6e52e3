"""From a batch to its loss: hidden states of the labeled positions, through the head.

Padding never reaches the output matrix: hidden states of labeled positions are gathered first. The
whole loss is one `nn.Module.forward`: data and tensor parallelism wrap this module and reach every weight that the loss
reads.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.config.training import ContrastiveConfig
from regard.data.batches.arrays import IGNORE_INDEX
from regard.data.batches.batch import Batch
from regard.models.build import AnyModel
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.heads import BagHead, LMHead, MLMHead, PixelHead, pool_states
from regard.models.inputs import EmbeddedInput, PatchInput, cut_patches
from regard.training.contrastive import contrastive_loss, find_duplicates
from regard.training.loss import LossSums, class_loss, pixel_loss, token_loss


class Objective(nn.Module):
    """The training objective: the loss summed over all labeled positions of a batch.

    In evaluation mode the loss is plain cross-entropy: without label smoothing and compilation.

    Args:
        model: The model to train.
        label_smoothing: Probability mass spread uniformly over the vocabulary.
        logit_rows: Rows of logits in memory at a time; 0 for all.
        should_compile: Compile everything below the head with torch.compile.
        contrastive: Settings of the contrastive loss, for a model without a head.
    """

    def __init__(
        self,
        model: AnyModel,
        *,
        label_smoothing: float,
        logit_rows: int,
        should_compile: bool = False,
        contrastive: ContrastiveConfig | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.logit_rows = logit_rows
        self.contrastive = contrastive
        self._hidden_states = (
            torch.compile(self._compute_hidden_states, dynamic=True) if should_compile else self._compute_hidden_states
        )

    def forward(self, batch: Batch) -> LossSums:
        """Return the loss of a batch as sums, and in evaluation mode the predictions of a classifier or the vectors.

        Moves the batch to the model's device.
        """
        device = next(self.model.parameters()).device
        hidden_states = self._hidden_states if self.training else self._compute_hidden_states
        if self.contrastive is not None:
            return self._contrastive_loss(batch.to(device), self.contrastive, hidden_states)
        batch = _drop_trivial_masks(batch)
        x, valid = hidden_states(batch.to(device))
        if isinstance(self.model.head, PixelHead):
            return self._pixel_loss(x, batch.to(device), self.model.head)
        return self._loss(x, batch.labels, valid)

    if TYPE_CHECKING:
        __call__ = forward

    def _contrastive_loss(
        self, batch: Batch, settings: ContrastiveConfig, hidden_states: Callable[[Batch], EmbeddedInput]
    ) -> LossSums:
        tokens = _require(batch.source), _require(batch.target)
        vectors = []
        for source, valid in zip(tokens, (batch.source_valid, batch.target_valid), strict=True):
            x, _ = hidden_states(_drop_trivial_masks(replace(batch, source=source, source_valid=valid)))
            vectors.append(pool_states(x, valid, "mean"))  # (B, D)
        duplicates = find_duplicates(*tokens, batch.source_valid, batch.target_valid)
        loss_sums = contrastive_loss(vectors[0], vectors[1], batch.labels, settings.temperature, duplicates)
        return loss_sums if self.training else loss_sums._replace(predictions=torch.stack(vectors))

    def _compute_hidden_states(self, batch: Batch) -> EmbeddedInput:
        """Return the states that the head reads, (B, T, D), and of an encoder which of them are no padding (B, T)."""
        model = self.model
        if isinstance(model, EncoderDecoder):
            return model.hidden_states(_require(batch.source), _require(batch.target), batch.source_valid), None
        if isinstance(model, DecoderOnly):
            states = model.hidden_states(_require(batch.target), positions=batch.positions, documents=batch.documents)
            return states, None
        return model.hidden_states(
            _require(batch.source), batch.source_valid, types=batch.types, positions=batch.positions
        )

    def _pixel_loss(self, x: Tensor, batch: Batch, head: PixelHead) -> LossSums:
        images = _require(batch.source)
        inputs: nn.Module = self.model.source  # type: ignore[assignment]
        assert isinstance(inputs, PatchInput)  # noqa: S101 - only images have this head
        predicted = head(x, None, batch.positions, inputs.count_vectors(images))  # (B, patches, pixels)
        return pixel_loss(predicted, cut_patches(images, inputs.patch), batch.labels != IGNORE_INDEX)

    def _loss(self, x: Tensor, labels: Tensor, valid: Tensor | None) -> LossSums:
        head: nn.Module = self.model.head
        label_smoothing = self.label_smoothing if self.training else 0.0
        if isinstance(head, BagHead):
            x, head = head.average(x, valid), head.lm_head
        if not isinstance(head, LMHead | MLMHead):  # few classes: chunking saves nothing
            logits = head(x, valid)  # (B, classes) or (B, T, classes)
            loss_sums = class_loss(logits, labels.to(x.device), label_smoothing)
            return loss_sums if self.training else loss_sums._replace(predictions=logits.argmax(dim=-1))
        x, labels = x.flatten(0, 1), labels.flatten()  # (B T, D), (B T)
        indices = (labels != IGNORE_INDEX).nonzero()[:, 0]
        if indices.numel() < labels.numel():
            x, labels = x.index_select(0, indices.to(x.device)), labels[indices]  # (N, D), (N)
        if isinstance(head, MLMHead):
            x, head = head.transform(x), head.lm_head
        labels, weight, bias = labels.to(x.device), head.projection.weight, head.bias
        return token_loss(x, labels, weight, bias, label_smoothing, self.logit_rows)


def _drop_trivial_masks(batch: Batch) -> Batch:
    """Remove masks that mask nothing, so that attention stays on its fast path."""
    source_valid, documents, positions = batch.source_valid, batch.documents, batch.positions
    if source_valid is not None and bool(source_valid.all()):
        source_valid = None
    if documents is not None and bool(((documents == documents[:, :1]) | (documents < 0)).all()):
        documents = positions = None  # one text per row; padding behind it is never attended to
    return replace(batch, source_valid=source_valid, documents=documents, positions=positions)


def _require(tokens: Tensor | None) -> Tensor:
    assert tokens is not None  # noqa: S101 - the task sets them
    return tokens
