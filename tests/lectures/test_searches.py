"""Beam search over the table on which two hypotheses are too few."""

import pytest

from regard.lectures.searches import MISSED, SOLVED, WordTable, search_all, search_beam


@pytest.mark.parametrize("size", [1, 2])
def test_beam_of_two_misses_the_best_sentence(size: int) -> None:
    assert search_beam(MISSED, size)[0].score < search_all(MISSED).score - 0.1


@pytest.mark.parametrize("size", [3, 4])
def test_beam_of_three_finds_the_best_sentence(size: int) -> None:
    best = search_all(MISSED)
    assert MISSED.write(best.tokens) == "they won <END>"
    assert search_beam(MISSED, size)[0].tokens == best.tokens


def test_stopping_at_the_first_finished_hypothesis_misses_the_best_sentence() -> None:
    assert search_beam(MISSED, 3, stop_after=1)[0].score < search_beam(MISSED, 3)[0].score


def test_length_penalty_changes_the_winner() -> None:
    winners = [MISSED.write(search_beam(MISSED, 2, alpha)[0].tokens) for alpha in (0, 1)]
    assert winners == ["yes <END>", "we won <END>"]


@pytest.mark.parametrize("table", [SOLVED, MISSED])
def test_rows_of_a_table_sum_to_one(table: WordTable) -> None:
    assert all(sum(row) == pytest.approx(1) for row in table.probabilities)
