"""Vectors (B, T, D) -> logits: words, masked words, one class, a tag for each, or the vectors themselves.

Every head is called with the vectors and which of them are real (None: all), and every output matrix is a
Linear of its own or the embedding table of the input.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.nn.feedforward import ACTIVATIONS


class LMHead(nn.Module):
    """A score for every word at every position, by an own matrix or the tied embedding table.

    The table's module is shared, not its parameter: a tie that survives moving the model to another device.
    """

    def __init__(self, projection: nn.Linear | nn.Embedding, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.projection = projection  # its weight is (words, D)
        self.bias = bias  # (words)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """(B, T, D) -> (B, T, words)."""
        return F.linear(x, self.projection.weight, self.bias)

    if TYPE_CHECKING:
        __call__ = forward


class MLMHead(nn.Module):
    """A dense layer, a bend and a norm before the words: what BERT fills gaps with."""

    def __init__(self, dense: nn.Linear, activation: str, norm: nn.Module, lm_head: LMHead) -> None:
        super().__init__()
        self.dense = dense
        self.activation: Callable[[Tensor], Tensor] = ACTIVATIONS[activation]
        self.norm = norm
        self.lm_head = lm_head

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, words)."""
        return self.lm_head(self.transform(x), valid)

    if TYPE_CHECKING:
        __call__ = forward

    def transform(self, x: Tensor) -> Tensor:
        """What the output matrix reads: (..., D) -> (..., D)."""
        return self.norm(self.activation(self.dense(x)))


class ClassHead(nn.Module):
    """One label for the sequence, from its first vector, its last real one, or the mean of the real ones."""

    def __init__(self, dense: nn.Linear | None, classes: nn.Linear, pool: str) -> None:
        super().__init__()
        self.dense = dense
        self.classes = classes
        self.pool = pool

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, labels)."""
        pooled = self.pool_states(x, valid)  # (B, D)
        if self.dense is not None:
            pooled = torch.tanh(self.dense(pooled))
        return self.classes(pooled)

    if TYPE_CHECKING:
        __call__ = forward

    def pool_states(self, x: Tensor, valid: Tensor | None) -> Tensor:
        """The vector that speaks for the sequence, (B, D)."""
        if self.pool == "first":
            return x[:, 0]
        if self.pool == "last":
            if valid is None:
                return x[:, -1]
            index = torch.arange(x.size(1), device=x.device)
            last = torch.where(valid, index, 0).argmax(dim=1)  # (B)
            return x[torch.arange(x.size(0), device=x.device), last]
        if valid is None:
            return x.mean(dim=1)
        return (x * valid[..., None]).sum(dim=1) / valid.sum(dim=1, keepdim=True).clamp(min=1)


class TagHead(nn.Module):
    """One label for every position."""

    def __init__(self, tags: nn.Linear) -> None:
        super().__init__()
        self.tags = tags

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """(B, T, D) -> (B, T, labels)."""
        return self.tags(x)

    if TYPE_CHECKING:
        __call__ = forward


class IdentityHead(nn.Module):
    """Nothing to add."""

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """(B, T, D) as it is."""
        return x

    if TYPE_CHECKING:
        __call__ = forward


Head = LMHead | MLMHead | ClassHead | TagHead | IdentityHead
