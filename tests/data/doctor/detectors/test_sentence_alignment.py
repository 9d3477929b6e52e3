"""Shifts between the two files of a corpus."""

import numpy as np
import pytest

from regard.data.doctor.detectors.sentence_alignment import align
from tests.data.doctor.factories import make_lengths


@pytest.mark.parametrize("rows", [6000, 40_000])
@pytest.mark.parametrize("by", [1, 3])
def test_a_shift_is_located(rows: int, by: int) -> None:
    source, target = make_lengths(rows)
    shifted = np.delete(target, range(4999, 4999 + by))
    (stretch,) = align(source[: len(shifted)], shifted).misaligned
    assert abs(stretch.first_row - 4999) <= 50
    assert stretch.last_row >= len(shifted) - 50
    assert stretch.shift == -by
    back = align(shifted, source[: len(shifted)]).misaligned[0]
    assert back.shift == by


def test_a_shift_that_recovers_has_an_end() -> None:
    source, target = make_lengths(5000)
    target[2000:2100] = np.roll(target[2000:2100], 1)
    (stretch,) = align(source, target).misaligned
    assert abs(stretch.first_row - 2000) <= 10
    assert abs(stretch.last_row - 2099) <= 10
    assert stretch.row_count == stretch.last_row - stretch.first_row + 1


def test_aligned_corpora_have_no_misaligned_stretch() -> None:
    for seed in range(5):
        source, target = make_lengths(20_000, seed)
        target[::50] = 5  # scattered bad lines are no stretch
        target[[1000, 1011, 1022]] = 1  # nor are a few nearby ones
        assert align(source, target).misaligned == ()


def test_files_that_are_not_parallel() -> None:
    source, target = make_lengths(5000)
    alignment = align(source, np.random.default_rng(1).permutation(target))
    assert not alignment.is_informative or alignment.misaligned[0].row_count > 4500
    assert np.median(alignment.correlations) < 0.2
    constant = np.full(500, 40, np.uint32)
    assert not align(constant, constant).is_informative
    assert not align(source[:50], target[:50]).is_informative
