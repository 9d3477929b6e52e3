"""Masked patch loss: the squared error of the pixels."""

import torch
from torch import Tensor

from regard.models.loss.sums import LossSums


def pixel_loss(predicted: Tensor, pixels: Tensor, is_masked: Tensor) -> LossSums:
    """Sum of per-patch mean squared errors over masked patches; `correct` is 0.

    Each patch is first normalized by its own mean and standard deviation (He et al. 2022), so the model learns
    structure instead of brightness.

    Args:
        predicted: (B, patches, pixels).
        pixels: The target pixels, in the same shape.
        is_masked: (B, patches); visible patches do not count.
    """
    pixels = pixels.float()
    deviation = (pixels.var(dim=-1, keepdim=True, correction=0) + 1e-6).sqrt()
    errors = (predicted.float() - (pixels - pixels.mean(dim=-1, keepdim=True)) / deviation).square().mean(dim=-1)
    total = errors[is_masked].sum()
    return LossSums(total, total.detach(), torch.zeros((), dtype=torch.long, device=total.device))
