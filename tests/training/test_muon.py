"""Muon in float32 takes torch's steps, and orthogonalizes as its polynomial says."""

import pytest
import torch
from torch import nn

from regard.training.muon import Float32Muon, orthogonalize

COEFFICIENTS = (3.4445, -4.775, 2.0315)


@pytest.mark.parametrize("shape", [(6, 20), (20, 6), (8, 8)])
def test_the_iteration_maps_singular_values_by_its_polynomial(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    left, values, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    values = values / values.norm()
    for _ in range(5):
        a, b, c = COEFFICIENTS
        values = a * values + b * values**3 + c * values**5
    assert 0.5 < values.min() <= values.max() < 1.3, "nearly orthogonal"
    computed = orthogonalize(matrix, COEFFICIENTS, 5, 1e-7)
    torch.testing.assert_close(computed, (left * values @ right).float(), atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(orthogonalize(torch.zeros(shape), COEFFICIENTS, 5, 1e-7), torch.zeros(shape))


@pytest.mark.parametrize("shape", [(6, 20), (20, 6)])
def test_steps_are_those_of_torch_within_bfloat16(shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(shape, generator=generator)
    parameters = [nn.Parameter(start.clone()) for _ in range(2)]
    kinds = (torch.optim.Muon, Float32Muon)
    optimizers = [
        kind([parameter], lr=0.1, weight_decay=0.1, momentum=0.9, adjust_lr_fn="match_rms_adamw")
        for kind, parameter in zip(kinds, parameters, strict=True)
    ]
    for _ in range(4):
        gradient = torch.randn(shape, generator=generator)
        for parameter, optimizer in zip(parameters, optimizers, strict=True):
            parameter.grad = gradient.clone()
            optimizer.step()
    torch_moved, moved = (parameter.detach() - start for parameter in parameters)
    assert (moved - torch_moved).norm() < 0.01 * torch_moved.norm(), "bfloat16 has three digits"
    buffers = [optimizer.state[p]["momentum_buffer"] for p, optimizer in zip(parameters, optimizers, strict=True)]
    torch.testing.assert_close(*buffers, atol=0, rtol=0)
