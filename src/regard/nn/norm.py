"""LayerNorm and RMSNorm: PyTorch's kernels, computed in the precision of their weights."""

from torch import Tensor, nn


class RMSNorm(nn.RMSNorm):
    """Divide by the root mean square, and scale."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., size) -> (..., size), in the type of x; computed in the type of the weight, also under autocast."""
        return super().forward(x.to(self.weight.dtype)).to(x.dtype)


def make_norm(kind: str, size: int, eps: float, bias: bool) -> nn.Module:
    """Make a norm: `layer` subtracts the mean, divides by the deviation, scales, shifts; `rms` divides and scales."""
    if kind == "rms":
        return RMSNorm(size, eps=eps)
    return nn.LayerNorm(size, eps=eps, bias=bias)
