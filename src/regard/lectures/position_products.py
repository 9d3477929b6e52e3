"""Dot products of sinusoidal positions by their distance, and the control that draws them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.lectures.blocks import Case, Control
from regard.nn.positions import Sinusoidal

MAX_DISTANCE = 50


def encode(count: int, width: int) -> Tensor:
    """Return the first positions, (T, D)."""
    return Sinusoidal(width, 10000.0, interleaved=True).encode(torch.arange(count)[None])[0].double()


def multiply(width: int) -> Tensor:
    """Return PE(0).PE(distance) for distances 0 to 50, (51)."""
    encoded = encode(MAX_DISTANCE + 1, width)
    return encoded @ encoded[0]


def make_control(widths: Sequence[int]) -> Control:
    """Return the control for these numbers of dimensions."""
    probes = []
    for width in widths:
        products = multiply(width)
        first_rise = 1 + int((products.diff() > 0).nonzero()[0])
        for distance in (0, 3, 4, MAX_DISTANCE):
            value, share = products[distance].item(), (products[distance] / products[0]).item()
            outputs = {"product": value, "share": share, "rise": first_rise}
            probes.append(Case(inputs={"d": str(width), "distance": distance}, outputs=outputs))
    params = {"widths": widths, "d": widths[0]}
    return Control(control="position-products", title="Dot product by distance", params=params, probes=probes)
