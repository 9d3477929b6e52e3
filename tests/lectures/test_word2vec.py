"""word2vec in small: windows and matrices."""

import re

import pytest

from regard.lectures.subjects import show


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return list(show("word2vec"))


def test_a_window_of_five_words_has_two_on_each_side(lines: list[str]) -> None:
    assert "M = 5 adjacent words, 2 on each side" in lines[0]
    context, middle = re.findall(r"CBOW: (.*) -> (\w+);", lines[2])[0]
    assert len(context.split(", ")) == 4
    assert middle not in context.split(", ")


def test_either_matrix_of_cbow_has_neighbors_of_the_same_kind(lines: list[str]) -> None:
    rows = {row.split()[0]: [int(part) for part in re.findall(r"(\d+)%", row)] for row in lines if "% of" in row}
    assert set(rows) == {"CBOW", "skip-gram"}
    assert min(rows["CBOW"]) >= 80
    assert rows["skip-gram"][0] >= 80, "the lecture's E of skip-gram"
