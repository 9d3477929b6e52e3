"""Muon in float32, for devices without bfloat16 matrix units.

`torch.optim.Muon` orthogonalizes steps in bfloat16 on every device. A CPU without AMX emulates bfloat16: for a matrix
of 768 x 512 that takes 229 ms instead of 55 ms in float32 (one thread), which was half of the training time of a
GRU translator. `Float32Muon` is the same optimizer with the same state and a more precise step.

    reference   torch.optim.Muon
    proof       tests/training/test_muon.py: its steps, and the iteration on singular values
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Float32Muon(torch.optim.Muon):
    """`torch.optim.Muon` with `adjust_lr_fn="match_rms_adamw"`, computed in float32."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        assert closure is None  # noqa: S101 - the trainer computes gradients before
        for group in self.param_groups:
            parameters: list[Tensor] = []
            gradients: list[Tensor] = []
            averages: list[Tensor] = []
            self._init_group(group, parameters, gradients, averages)  # the momentum, as torch stores it
            momentum, learning_rate = group["momentum"], group["lr"]
            for parameter, gradient, average in zip(parameters, gradients, averages, strict=True):
                average.lerp_(gradient, 1 - momentum)
                step = orthogonalize(
                    gradient.lerp(average, momentum),  # Nesterov's momentum
                    group["ns_coefficients"], group["ns_steps"], group["eps"],
                )  # fmt: skip
                parameter.mul_(1 - learning_rate * group["weight_decay"])
                parameter.add_(step, alpha=-learning_rate * 0.2 * max(parameter.shape) ** 0.5)  # AdamW's usual size


def orthogonalize(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return U p(...p(S)) V^T of a matrix U S V^T / ||S||, with p(s) = a s + b s^3 + c s^5: all near 1."""
    a, b, c = coefficients
    x = matrix.T if matrix.size(0) > matrix.size(1) else matrix  # (m, n), m <= n
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T  # (m, m)
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)  # a x + (b G + c G^2) x
    return x.T if matrix.size(0) > matrix.size(1) else x
