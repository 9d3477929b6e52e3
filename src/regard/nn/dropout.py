"""CPU fast path; reference: `torch.nn.functional.dropout`; proven by: tests/nn/test_dropout.py.

On a CPU, torch samples one float per element and compares it with the rate, which takes a tenth of a small model's
training step. This module samples one 64-bit integer for four elements, 16 bits each. The rate is accurate to 1/131072,
and kept elements are divided by the exact keep probability, so the expectation is exact. Other devices and
`torch.compile` use torch's own dropout.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.base import cpu_fast_path
from regard.base.errors import RegardError

LEVELS = 2**16  # number of values of 16 bits


class Dropout(nn.Module):
    """In training, set each element to zero with probability `rate` and scale up the rest; in evaluation, return x."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise RegardError(f"The dropout rate must be in [0, 1), got {rate}.", hint="Use 0 to switch dropout off.")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling() or not cpu_fast_path.is_enabled():
            return F.dropout(x, self.rate)
        return x * dropout_mask(x, self.rate)

    if TYPE_CHECKING:
        __call__ = forward

    def extra_repr(self) -> str:
        """Return the arguments that `print(model)` shows."""
        return f"rate={self.rate}"


def dropout_mask(x: Tensor, rate: float) -> Tensor:
    """Return a mask like x of zeros and 1 / (1 - rate), sampled from torch's default generator.

    >>> _ = torch.manual_seed(0)
    >>> dropout_mask(torch.ones(5), 0.5)
    tensor([0., 0., 2., 0., 0.])
    """
    threshold = min(round(rate * LEVELS), LEVELS - 1)  # a rate close to 1 still keeps some elements
    random_int64 = x.new_empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)  # all 64 bits
    bits = random_int64.view(torch.int16)[: x.numel()].view(x.shape)
    # 16 bits are an integer from -32768 to 32767; the comparison is written as 0 or 1 in the type of x.
    mask = torch.ge(bits, threshold - LEVELS // 2, out=torch.empty_like(x, memory_format=torch.contiguous_format))
    return mask.mul_(LEVELS / (LEVELS - threshold))
