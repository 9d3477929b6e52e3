"""Positions in low precision."""

import pytest
import torch

from regard.nn.positions import Rotary, Sinusoidal
from regard.training.precision import Precision, autocast
from tests.training.tensors import each_low_precision, random_tensor


@each_low_precision
@pytest.mark.parametrize("interleaved", [True, False])
def test_angles_are_float32_and_rotate_low_precision_heads(interleaved: bool, precision: Precision) -> None:
    rotary, positions = Rotary(8, 10000.0, interleaved), torch.arange(1000, 1007)[None]
    heads = random_tensor(2, 3, 7, 8).to(getattr(torch, precision))
    exact = rotary.on_heads(heads.float(), rotary.angles(positions))
    with autocast("cpu", precision):
        angles = rotary.angles(positions)
        rotated = rotary.on_heads(heads, angles)
        encodings = Sinusoidal(8, 10000.0, interleaved).encode(positions)
    assert {angles[0].dtype, angles[1].dtype, encodings.dtype} == {torch.float32}
    assert torch.equal(rotated, exact.to(heads.dtype))
