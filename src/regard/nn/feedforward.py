"""The position-wise feed-forward network: up projection, activation, down projection."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn import functional as F

from regard.nn.context import Context
from regard.nn.dropout import Dropout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """down(f(up x)), or with a gate down(f(gate x) * up x) (GLU variants: SwiGLU, GEGLU)."""

    def __init__(self, up: nn.Linear, gate: nn.Linear | None, down: nn.Linear, activation: str, dropout: float) -> None:
        super().__init__()
        self.up, self.gate, self.down = up, gate, down
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, context: Context) -> Tensor:  # noqa: ARG002
        """(B, T, D) -> (B, T, D)."""
        if self.gate is None:
            hidden = self.activation(self.up(x))  # (B, T, hidden)
        else:
            hidden = self.activation(self.gate(x)) * self.up(x)  # (B, T, hidden)
        return self.down(self.dropout(hidden))  # (B, T, D)

    if TYPE_CHECKING:
        __call__ = forward
