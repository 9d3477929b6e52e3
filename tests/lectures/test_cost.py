"""What the cost of attention is measured to be."""

import re

import pytest

from regard.lectures import cost
from regard.lectures.subjects import show


@pytest.fixture(autouse=True)
def few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "TRIES", 1)


def read_rows(subject: str) -> list[list[str]]:
    lines = "\n".join(show(subject)).splitlines()
    return [re.split(r"  +", line.strip()) for line in lines if re.search(r"\d  ", line) and "=" not in line]


def test_one_pass_equals_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LENGTHS", (8, 32))
    rows = read_rows("parallel")
    assert [row[:2] for row in rows] == [[kind, str(n)] for kind in ("sinusoidal", "none") for n in cost.LENGTHS]
    assert all(float(row[-1]) < 1e-4 for row in rows)


def test_scores_of_pairs_keep_a_vector_for_each() -> None:
    rows = read_rows("scores")
    numbers = {row[0]: int(row[-1].split()[0].replace(",", "")) for row in rows}
    pairs = 8 * 128 * 128  # heads, queries, keys
    assert numbers["additive"] == numbers["concat"] == 64 * pairs
    assert max(numbers["dot"], numbers["scaled dot"], numbers["general"]) <= pairs


def test_every_token_adds_as_many_bytes_and_the_source_none() -> None:
    rows = [[int(cell.replace(",", "")) for cell in row[:3]] for row in read_rows("cache")]
    assert len({row[1] for row in rows}) == 1
    assert [row[2] for row in rows] == [row[0] * rows[0][2] for row in rows]
