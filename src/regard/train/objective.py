"""From a batch to its loss: the model's vectors, where something must come out, through the head.

Padding never reaches the output matrix: the vectors of real places are gathered first. With `agreement` a batch goes
through the model twice side by side, each time with other dropout (see `agreement`).
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.batch import Batch
from regard.data.rows import IGNORE_INDEX
from regard.models.build import AnyModel
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.heads import LMHead, MLMHead
from regard.train.agreement import agreeing_class_loss, agreeing_word_loss
from regard.train.loss import WordLoss, class_loss, word_loss


class Objective:
    """What is minimised: the sum over all places of a batch where something must come out."""

    def __init__(
        self, model: AnyModel, *, smoothing: float, rows: int, agreement: float = 0.0, compiled: bool = False
    ) -> None:
        """`rows` of logits exist at a time (0: all); `compiled` fuses everything below the head."""
        self.model = model
        self.smoothing = smoothing
        self.agreement = agreement
        self.rows = rows
        self._vectors = torch.compile(self._below_head, dynamic=True) if compiled else self._below_head

    def __call__(self, batch: Batch) -> WordLoss:
        """The loss of a batch, as sums; the batch may be on the CPU."""
        device = next(self.model.parameters()).device
        if self.agreement:
            batch = _twice(batch)
        x = self._vectors(_simplest(batch).to(device))
        return self._loss(x, batch.labels, batch.source_valid)

    def _below_head(self, batch: Batch) -> Tensor:
        model = self.model
        if isinstance(model, EncoderDecoder):
            return model.hidden_states(_given(batch.source), _given(batch.target), batch.source_valid)  # (B, T, D)
        if isinstance(model, DecoderOnly):
            return model.hidden_states(_given(batch.target), positions=batch.positions, documents=batch.documents)
        return model.hidden_states(_given(batch.source), batch.source_valid)[0]

    def _loss(self, x: Tensor, labels: Tensor, real: Tensor | None) -> WordLoss:
        head: nn.Module = self.model.head
        if not isinstance(head, LMHead | MLMHead):  # few classes: nothing to save
            logits = head(x, None if real is None else real.to(x.device)).flatten(0, -2)  # (N, classes)
            labels = labels.flatten().to(x.device)  # (N)
            if self.agreement:
                return agreeing_class_loss(logits, labels, self.smoothing, self.agreement)
            return class_loss(logits, labels, self.smoothing)
        x, labels = x.flatten(0, 1), labels.flatten()  # (B T, D), (B T)
        places = (labels != IGNORE_INDEX).nonzero()[:, 0]
        if places.numel() < labels.numel():
            x, labels = x.index_select(0, places.to(x.device)), labels[places]  # (N, D), (N)
        if isinstance(head, MLMHead):
            x, head = head.transform(x), head.lm_head
        labels, weight, bias = labels.to(x.device), head.projection.weight, head.bias
        if self.agreement:
            return agreeing_word_loss(x, labels, weight, bias, self.smoothing, self.rows, self.agreement)
        return word_loss(x, labels, weight, bias, self.smoothing, self.rows)


def _twice(batch: Batch) -> Batch:
    """All rows, and all of them once more."""
    rows = ("labels", "source", "source_real", "target", "documents", "positions")
    there = {name: tensor for name in rows if (tensor := getattr(batch, name)) is not None}
    doubled: dict[str, Any] = {name: torch.cat((tensor, tensor)) for name, tensor in there.items()}
    return replace(batch, **doubled)


def _simplest(batch: Batch) -> Batch:
    """The same batch without masks that hide nothing, so that attention stays on its fast path."""
    source_real, documents, positions = batch.source_valid, batch.documents, batch.positions
    if source_real is not None and bool(source_real.all()):
        source_real = None
    if documents is not None and bool(((documents == documents[:, :1]) | (documents < 0)).all()):
        documents = positions = None  # one text a row, perhaps with padding behind it, which nobody sees
    return replace(batch, source_real=source_real, documents=documents, positions=positions)


def _given(tokens: Tensor | None) -> Tensor:
    assert tokens is not None  # noqa: S101 - the task made them
    return tokens
