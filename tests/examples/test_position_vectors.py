"""Similarities of positions by their distance."""

import pytest
import torch
from examples.position_vectors.run import FORMULAS, compare, read_vectors


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_depend_on_the_distance_only(name: str) -> None:
    matrix = compare(read_vectors(FORMULAS[name]))
    for distance in (0, 1, 8, 64):
        row = matrix.diagonal(distance)
        torch.testing.assert_close(row, row[:1].expand(len(row)), rtol=0, atol=1e-3)
    assert matrix.diagonal().tolist() == pytest.approx([1.0] * 128)
    assert matrix[0, 1] > matrix[0, 4] > matrix[0, 16]
