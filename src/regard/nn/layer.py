"""One Transformer layer: sublayers, each inside a residual connection. Only `Residual` depends on pre- or post-norm.

pre                       post
x ---+                    x ---+
|   norm                  |  sublayer
|  sublayer               +--> +
+--> +                        norm
|                         |
"""

from typing import TYPE_CHECKING, Protocol

from torch import Tensor, nn

from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.context import Context
from regard.nn.dropout import Dropout
from regard.nn.feedforward import FeedForward


class Sublayer(Protocol):
    """Attention or feed-forward: both have the same signature."""

    def __call__(self, x: Tensor, context: Context) -> Tensor:
        """(B, T, D) -> (B, T, D)."""


class Residual(nn.Module):
    """The residual connection: x + sublayer(norm(x)) (pre-norm) or norm(x + sublayer(x)) (post-norm)."""

    def __init__(self, name: str, norm: nn.Module, is_pre_norm: bool, dropout: float) -> None:
        super().__init__()
        self.name = name
        self.norm = norm
        self.is_pre_norm = is_pre_norm
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer, context: Context) -> Tensor:
        """Return the residual stream (B, T, D) after this sublayer."""
        if self.is_pre_norm:
            x = x + self.dropout(sublayer(self.norm(x), context))
        else:
            x = self.norm(x + self.dropout(sublayer(x, context)))
        if context.record is not None:
            context.record.residuals[self.name] = x
        return x

    if TYPE_CHECKING:
        __call__ = forward


class Layer(nn.Module):
    """One Transformer layer: self-attention, optional cross-attention, feed-forward."""

    def __init__(
        self,
        attention: SelfAttention,
        attention_residual: Residual,
        cross: CrossAttention | None,
        cross_residual: Residual | None,
        feedforward: FeedForward,
        feedforward_residual: Residual,
    ) -> None:
        super().__init__()
        self.attention, self.attention_residual = attention, attention_residual
        self.cross, self.cross_residual = cross, cross_residual
        self.feedforward, self.feedforward_residual = feedforward, feedforward_residual

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        x = self.attention_residual(x, self.attention, context)
        if self.cross is not None and self.cross_residual is not None:
            x = self.cross_residual(x, self.cross, context)
        return self.feedforward_residual(x, self.feedforward, context)

    if TYPE_CHECKING:
        __call__ = forward
