"""Cheap noise must still be noise: its rate, its expectation, its independence, its seed."""

import math

import pytest
import torch

from regard.base.errors import RegardError
from regard.nn.dropout import Dropout, dropout_mask


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3, 0.5, 0.9])
def test_the_rate_and_the_expectation(rate: float) -> None:
    torch.manual_seed(0)
    count = 4_000_000
    noise = dropout_mask(torch.ones(count), rate)
    tolerance = 5 * math.sqrt(rate * (1 - rate) / count)  # five standard deviations of a fair coin
    assert abs(float((noise == 0).float().mean()) - rate) < tolerance
    assert float(noise.double().mean()) == pytest.approx(1, abs=tolerance / (1 - rate))
    assert noise.unique().numel() == 2


def test_neighbours_are_independent() -> None:
    """Four elements share one random integer: their masks must be independent at every distance."""
    torch.manual_seed(0)
    noise = dropout_mask(torch.ones(1_000_000), 0.5).double() - 1
    for distance in (1, 2, 3, 4, 8, 64):
        correlation = float((noise[distance:] * noise[:-distance]).mean())
        assert abs(correlation) < 5 / math.sqrt(1_000_000)


def test_every_level_of_the_bits_is_used() -> None:
    torch.manual_seed(0)
    assert float((dropout_mask(torch.ones(1_000_000), 1 - 1e-4) > 0).float().mean()) == pytest.approx(1e-4, rel=0.5)
    assert float((dropout_mask(torch.ones(1_000_000), 1e-4) == 0).float().mean()) == pytest.approx(1e-4, rel=0.5)


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3, 5), (0, 4), (7, 1)])
def test_any_shape_and_type(shape: tuple[int, ...]) -> None:
    for kind in (torch.float32, torch.bfloat16):
        x = torch.ones(shape, dtype=kind)
        assert Dropout(0.3)(x).shape == x.shape
        assert Dropout(0.3)(x).dtype == kind


def test_it_rests_outside_training_and_follows_the_seed() -> None:
    x, dropout = torch.randn(100), Dropout(0.5)
    assert dropout.eval()(x) is x
    assert Dropout(0.0)(x) is x
    dropout.train()
    torch.manual_seed(7)
    first = dropout(x)
    assert not torch.equal(first, dropout(x))
    torch.manual_seed(7)
    assert torch.equal(first, dropout(x))


def test_gradients_pass_where_values_pass() -> None:
    x = torch.randn(1000, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.where(y == 0, 0.0, 2.0))


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2.0])
def test_a_rate_outside_0_to_1_raises(rate: float) -> None:
    with pytest.raises(RegardError, match="must be in \\[0, 1\\)"):
        Dropout(rate)


def test_compiled_models_have_dropout_too() -> None:
    torch.compiler.reset()
    compiled = torch.compile(Dropout(0.5), fullgraph=True, backend="eager")
    share = float((compiled(torch.ones(100_000)) == 0).float().mean())
    assert share == pytest.approx(0.5, abs=0.02)
