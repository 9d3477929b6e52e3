"""Scores of labels, equal to scikit-learn's."""

from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.measure.classification import Confusion, make_confusion_matrix
from regard.measure.entities import count_entities
from tests.measure.factories import CASES


@pytest.mark.parametrize("case", CASES["classification"])
def test_classification_scores_equal_scikit_learn(case: dict[str, Any]) -> None:
    matrix = make_confusion_matrix(case["predicted"], case["expected"])
    assert matrix.counts.tolist() == case["counts"]
    assert matrix.accuracy == pytest.approx(case["accuracy"], abs=1e-12)
    assert matrix.macro_f1 == pytest.approx(case["macro_f1"], abs=1e-12)
    assert matrix.matthews == pytest.approx(case["matthews"], abs=1e-12)


def test_scores_of_each_label_by_hand() -> None:
    matrix = make_confusion_matrix(["a", "a", "b", "c"], ["a", "b", "b", "b"])
    scores = {score.label: (score.precision, score.recall, score.f1) for score in matrix.by_label()}
    assert scores["a"] == pytest.approx((50, 100, 200 / 3))
    assert scores["b"] == pytest.approx((100, 100 / 3, 50))
    assert scores["c"] == (0, 0, 0)  # predicted, never expected
    assert matrix.majority == ("b", 0.75)
    assert matrix.most_confused(1) == [Confusion("b", "a", 1)]
    assert [confusion.predicted for confusion in matrix.most_confused()] == ["a", "c"]


def test_labels_that_do_not_match_are_refused() -> None:
    with pytest.raises(RegardError, match="2 predicted and 1 expected"):
        make_confusion_matrix(["a", "b"], ["a"])
    with pytest.raises(RegardError, match="0 predicted"):
        make_confusion_matrix([], [])
    with pytest.raises(RegardError, match="differ in number"):
        count_entities([["O"]], [["O", "O"]])
    with pytest.raises(RegardError, match="there are none"):
        count_entities([], [])
