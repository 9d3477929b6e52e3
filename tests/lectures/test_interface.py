"""Recurrent and self-attention encoders behind one interface."""

import re

import pytest

from regard.lectures.subjects import show


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """The cells after each encoder's name."""
    lines = [re.split(r" {2,}|(?<=tion) ", line) for line in show("interface") if "x 128" in line]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}


def test_an_rnn_and_self_attention_have_the_same_sizes(rows: dict[str, list[str]]) -> None:
    assert set(rows) == {"RNN", "RNN, two ways", "self-attention"}
    assert all(cells[1:3] == ["5 x 128", "50 x 128"] for cells in rows.values())


def test_an_rnn_carries_changes_to_later_tokens_only(rows: dict[str, list[str]]) -> None:
    assert rows["RNN"][3:] == ["0", "39"]
    assert rows["RNN, two ways"][3:] == ["10", "39"]
    assert rows["self-attention"][3:] == ["10", "39"]
