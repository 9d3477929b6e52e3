"""Norms in low precision."""

import pytest
import torch

from regard.nn.norm import make_norm
from regard.training.precision import Precision, autocast
from tests.training.tensors import each_low_precision, random_tensor


@each_low_precision
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norms_of_low_precision_vectors_are_computed_in_float32(kind: str, precision: Precision) -> None:
    norm, x = make_norm(kind, 64, 1e-6, bias=True), (random_tensor(5, 64) * 30 + 100).to(getattr(torch, precision))
    with torch.no_grad():
        norm.weight.copy_(random_tensor(64))  # type: ignore[operator]
    expected = norm(x.float())
    with autocast("cpu", precision):
        assert norm(x.float()).dtype == torch.float32
        output = norm(x)
    rounding = torch.finfo(x.dtype).eps
    torch.testing.assert_close(output.float(), expected, rtol=rounding, atol=1e-6)  # rounded once, at the end
