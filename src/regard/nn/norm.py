"""The two norms, by name. Both are torch's own kernels, and both work in the precision of their weights."""

from torch import Tensor, nn


class RMSNorm(nn.RMSNorm):
    """Divide by the root of the mean square, and scale."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., size) as it came in, also where autocast made it narrower than the weight."""
        return super().forward(x.to(self.weight.dtype)).to(x.dtype)


def make_norm(kind: str, size: int, eps: float, bias: bool) -> nn.Module:
    """`layer`: subtract the mean, divide by the deviation, scale and shift. `rms`: divide and scale only."""
    if kind == "rms":
        return RMSNorm(size, eps=eps)
    return nn.LayerNorm(size, eps=eps, bias=bias)
