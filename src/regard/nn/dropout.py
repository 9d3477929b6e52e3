"""Dropout whose noise is cheap on a CPU.

torch draws a float for every element and compares it; that is a tenth of a small model's training step. Here one
64-bit number decides over four elements, 16 bits each. The rate is met to within 1/131072, and what survives is
divided by the share that really survives, so the expectation is exact. Other devices and `torch.compile` have a
fused dropout of their own, which is used there.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.base import cpu_fast_path
from regard.base.errors import RegardError

LEVELS = 2**16  # what 16 bits can tell apart


class Dropout(nn.Module):
    """In training, set each element to zero with probability `rate` and scale up the rest; else nothing."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise RegardError(f"A dropout rate of {rate} leaves nothing to learn from.", fix="Use 0 or more, below 1.")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling() or not cpu_fast_path.is_enabled():
            return F.dropout(x, self.rate)
        return x * dropout_mask(x, self.rate)

    if TYPE_CHECKING:
        __call__ = forward

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"rate={self.rate}"


def dropout_mask(x: Tensor, rate: float) -> Tensor:
    """Zeros and 1 / (1 - rate), drawn from torch's own generator.

    >>> _ = torch.manual_seed(0)
    >>> dropout_mask(torch.ones(5), 0.5)
    tensor([0., 0., 2., 0., 0.])
    """
    threshold = min(round(rate * LEVELS), LEVELS - 1)  # a rate next to 1 keeps something
    random_int64 = x.new_empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)  # all 64 bits
    bits = random_int64.view(torch.int16)[: x.numel()].view(x.shape)
    # 16 bits are read as a number from -32768 to 32767; the answer is written as 0 or 1 in x's own type.
    mask = torch.ge(bits, threshold - LEVELS // 2, out=torch.empty_like(x, memory_format=torch.contiguous_format))
    return mask.mul_(LEVELS / (LEVELS - threshold))
