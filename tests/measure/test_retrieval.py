"""Retrieval of partners."""

import numpy as np
import pytest

from regard.measure.retrieval import retrieval_at_1


def test_retrieval_counts_both_directions_and_forgives_equal_texts() -> None:
    first = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    assert retrieval_at_1(first, 5 * first) == 1.0
    second = np.array([[1, 0], [1, 0.1], [1, 0.2]], np.float32)
    # Forwards texts 0 and 2 find their partner; backwards all three are nearest to text 0, which is right once.
    assert retrieval_at_1(first, second) == pytest.approx((2 + 1) / 6)
    assert retrieval_at_1(first[[0, 0]], first[[0, 0]]) == 1.0
