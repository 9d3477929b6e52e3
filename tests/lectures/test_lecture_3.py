"""Weighted sums of lecture 3, and which words a sublayer connects."""

import pytest

from regard.lectures.lecture_3 import change_first, combine, look_up, rotary_arrows, weigh_scores


def test_one_zero_erases_a_product_and_hardly_changes_a_sum() -> None:
    values = combine(4, 2.0, 0.0)
    assert values == {"sum": 1.5, "product": 0.0, "sum_slope": 0.25, "product_slope": 8.0}


def test_equal_keys_share_the_weight() -> None:
    assert look_up("order_100", "order_100", 50) == pytest.approx(
        {"matches": 2, "weight": 0.5, "value": 5, "nearest": 5}
    )
    assert look_up("order_109", "order_1109", 50)["value"] == pytest.approx(9)


def test_rows_sum_to_one_and_columns_by_query() -> None:
    by_key, by_query = weigh_scores(1)
    assert by_key.sum(dim=1).tolist() == pytest.approx([1] * 5)
    assert by_query.sum(dim=0).tolist() == pytest.approx([1] * 5)


def test_only_attention_reaches_other_words() -> None:
    changes = change_first()
    assert changes["feedforward"][0] > 0.1
    assert not changes["feedforward"][1:].any()
    assert changes["attention"].min() > 0.01


def test_roformer_wins_three_of_six_tasks() -> None:
    assert rotary_arrows().numbers["wins"] == 3
