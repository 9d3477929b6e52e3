"""Beam search over the table on which two hypotheses are too few."""

import re

import pytest

from regard.lectures.searches import MISSED, SOLVED, WordTable, search_all, search_beam
from regard.lectures.subjects import show


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


def test_beam_of_two_walks_the_tree_of_the_lecture() -> None:
    steps = "\n".join(show("pie")).split("\n\n")
    assert "-0.70  open      he\n   -0.90  open      I\n" in steps[1]
    for step in steps[1:6]:
        assert step.count(" open ") == 2
        assert step.count(" dropped ") == 2
    assert "he hit a pie" in steps[4]
    assert " open      he hit a pie" not in steps[5]
    assert steps[-1].startswith("Backtracking from the best finished candidate (-4.3): he hit me with a pie <END>")


def test_greedy_misses_what_beam_search_finds() -> None:
    """0.41 x 0.95 x 0.9 is more than 0.5 x 0.4 x 0.5; no search scores more tokens than its bound."""
    output = "\n".join(show("search"))
    assert "he -0.7, I -0.9" in output
    assert re.search(r"^ +-1\.05 +finished +I ran <END>$", output, re.MULTILINE)
    assert "Backtracking from the best finished candidate: I ran <END>\n" in output
    rows = {line.split()[0]: line for line in output.splitlines() if "next tokens scored" in line}
    assert rows["greedy"].endswith("he hit <END>")
    assert rows["beam"].endswith("I ran <END>")
    assert rows["exhaustive"].endswith("I ran <END>")
    scored = {name: int(re.findall(r"= +(\d+)", line)[0]) for name, line in rows.items()}
    assert scored["greedy"] <= 6 * 4
    assert scored["greedy"] < scored["beam"] <= 2 * 6 * 4 < scored["exhaustive"]
