"""Shapes, norms, heads and gradients that `regard lectures show` prints."""

import re

import pytest

from regard.lectures.subjects import show


def read(subject: str) -> str:
    return "\n".join(show(subject))


def read_row(text: str, name: str) -> list[float]:
    line = next(line for line in text.splitlines() if name in line)
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?", line.replace(name, ""))]


def test_block_has_the_sizes_of_the_paper() -> None:
    encoder, masked, cross = re.split(r"\nDecoder block: ", read("block"))
    assert read_row(encoder, "input of the lowest encoder only") == [20, 512]
    assert read_row(encoder, "x0 = x + P: largest difference of input and embeddings + sinusoids")[0] < 1e-5
    for part, queries, keys in ((encoder, 20, 20), (masked, 30, 30), (cross, 30, 20)):
        assert read_row(part, "Q: heads x tokens x size of a head") == [8, queries, 64]
        assert read_row(part, "K: heads x tokens x size of a head") == [8, keys, 64]
        assert read_row(part, "V: heads x tokens x size of a head") == [8, keys, 64]
        assert f"8 x {queries} x {keys}" in part
        assert "rows sum to 1.0000 ... 1.0000" in part
    assert read_row(masked, "weight of later tokens in head 0:")[-1] == 0
    assert read_row(encoder, "weight of later tokens in head 0:")[-1] > 1
    assert read_row(encoder, "W of `up` (2048 / 512 = 4)")[-2:] == [2048, 512]
    assert "sum to 1.0000" in cross.splitlines()[-1]


def test_stack_shares_a_memory_and_no_weights() -> None:
    text = read("stack")
    assert "both blocks share: 0 of 16" in text
    for block in (0, 1):
        assert read_row(text, f"block {block}: keys of the encoder's last output, largest difference")[0] < 1e-5
    assert text.count("20 x 512") == 3, "the same size in and out"


def test_feed_forward_reads_one_token_and_attention_all() -> None:
    text = read("stack")
    assert read_row(text, "feed-forward  ") == [0, 19]
    assert read_row(text, "whole stack  ") == [19, 19]


def test_feed_forward_is_not_linear() -> None:
    assert read_row(read("stack"), "f(x) + f(-x) of the feed-forward, 0 for a linear layer: up to")[0] > 0.1


def test_heads_of_size_d_over_h_have_equal_matrices() -> None:
    rows = [read_row(line, "") for line in read("heads").replace(",", "").splitlines() if re.match(r" +\d", line)]
    assert [row[:3] for row in rows[:4]] == [[1, 512, 512], [4, 128, 128], [8, 64, 64], [16, 32, 32]]
    assert {row[9] for row in rows[:4]} == {4 * (512 * 512 + 512)}
    assert rows[4][3:5] == [8 * 32, 512]  # W_q of d_k = 32
    assert rows[5][5:9] == [8 * 32, 512, 512, 8 * 32]  # W_v and W_O of d_v = 32


def test_scores_and_projections_cross_at_the_width() -> None:
    rows = [read_row(line, "") for line in read("crossing").replace(",", "").splitlines() if re.match(r" +\d", line)]
    assert {row[0]: row[3] for row in rows} == {32: 1 / 16, 128: 1 / 4, 512: 1, 2048: 4, 8192: 16}


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


def test_a_prompt_is_read_in_both_directions_and_an_answer_in_one() -> None:
    text = read("prefix")
    assert text.count("x x x x . . . .") == 4
    assert read_row(text, "causal") == [0, 3, 0, 7]
    assert read_row(text, "prefix  ") == [3, 3, 0, 7]
