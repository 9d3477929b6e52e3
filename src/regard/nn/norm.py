"""The two norms, by name. Both are torch's own: one kernel each."""

from torch import nn


def make_norm(kind: str, size: int, eps: float, bias: bool) -> nn.Module:
    """`layer`: subtract the mean, divide by the deviation, scale and shift. `rms`: divide and scale only."""
    if kind == "rms":
        return nn.RMSNorm(size, eps=eps)
    return nn.LayerNorm(size, eps=eps, bias=bias)
