"""Dot products of sinusoidal positions are not monotone in the distance."""

import pytest

from regard.lectures.position_products import multiply


@pytest.mark.parametrize(("width", "distance"), [(4, 3), (64, 5)])
def test_a_larger_distance_can_have_a_larger_product(width: int, distance: int) -> None:
    products = multiply(width)
    assert products[distance + 1] > products[distance]
    assert products[0] == pytest.approx(width / 2)
    assert products.argmax() == 0
