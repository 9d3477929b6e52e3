"""Candidates for position encodings."""

import math

import pytest

from regard.lectures.candidates import iterate, recur, turn


def test_exponential_recursion_converges_below_and_explodes_above_one_over_e() -> None:
    last = recur("exp", 1.0, 0.3, 100)[-1]
    assert last == pytest.approx(math.exp(0.3 * last))
    assert recur("exp", 1.0, 0.4, 100)[-1] == math.inf
    assert recur("add", 1.0, 0.5, 10)[-1] == 6.0
    assert recur("power", 2.0, 0.5, 2) == [2.0, 2**0.5, 2**0.5]  # exponents 0.5 and 1


def test_powers_of_a_matrix_have_the_powers_of_its_eigenvalues() -> None:
    path = iterate(0.9, math.pi / 2, 4)
    assert path[4].norm().item() == pytest.approx(0.9**4)
    assert path[4].tolist() == pytest.approx([0.9**4, 0], abs=1e-12)


def test_turned_arrows_depend_on_their_distance() -> None:
    query, key = (1.0, 0.2), (0.6, 0.7)
    near, far = ((turn(query, m) @ turn(key, m - 2)).item() for m in (5, 905))
    assert near == pytest.approx(far, abs=1e-5)
    assert turn(query, 0).tolist() == pytest.approx(query)
