"""Candidates for position encodings: recursions of a number, powers of a matrix, and RoPE on one pair of dimensions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.nn.positions import Rotary


def recur(rule: str, start: float, c: float, steps: int) -> list[float]:
    """Return P(1) to P(steps + 1) in double precision; too large numbers become infinite."""
    position, factor = torch.tensor(start, dtype=torch.float64), torch.tensor(c, dtype=torch.float64)
    positions = [position]
    for t in range(1, steps + 1):
        rules = {"add": position + factor, "exp": (factor * position).exp(), "power": position ** (factor * t)}
        position = rules[rule]
        positions.append(position)
    return [value.item() for value in positions]


def iterate(size: float, angle: float, steps: int) -> list[Tensor]:
    """Return M^t (1, 0) for t = 0 to steps, with a matrix M whose eigenvalues have this size and this angle."""
    a = torch.tensor(angle, dtype=torch.float64)
    matrix = size * torch.stack((torch.stack((a.cos(), -a.sin())), torch.stack((a.sin(), a.cos()))))  # (2, 2)
    path = [torch.tensor([1.0, 0.0], dtype=torch.float64)]
    for _ in range(steps):
        path.append(matrix @ path[-1])
    return path


def turn(vector: Sequence[float], position: int) -> Tensor:
    """Return a query or key of two elements, turned by RoPE."""
    rotary = Rotary(2, theta=10000.0, interleaved=True)
    heads = torch.tensor(vector).view(1, 1, 1, 2)  # (B, H, T, K)
    return rotary.on_heads(heads, rotary.angles(torch.tensor([[position]]))).view(2)
