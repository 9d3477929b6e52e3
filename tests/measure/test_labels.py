"""Scores of labels: equal to scikit-learn's and seqeval's, which `make_label_fixtures` froze."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.measure.classification import Confusion, make_confusion_matrix
from regard.measure.entities import count_entities, find_entities, has_entities, score_entity_kinds
from regard.measure.label_scores import compare_labels, score_labels
from regard.measure.metric import Score

CASES: dict[str, list[dict[str, Any]]] = json.loads((Path(__file__).parent / "label_fixtures.json").read_text())


@pytest.mark.parametrize("case", CASES["classification"])
def test_classification_scores_equal_scikit_learn(case: dict[str, Any]) -> None:
    matrix = make_confusion_matrix(case["predicted"], case["expected"])
    assert matrix.counts.tolist() == case["counts"]
    assert matrix.accuracy == pytest.approx(case["accuracy"], abs=1e-12)
    assert matrix.macro_f1 == pytest.approx(case["macro_f1"], abs=1e-12)
    assert matrix.matthews == pytest.approx(case["matthews"], abs=1e-12)


@pytest.mark.parametrize("case", CASES["entities"])
def test_entity_scores_equal_seqeval(case: dict[str, Any]) -> None:
    for tags, entities in zip(case["expected"], case["entities"], strict=True):
        assert find_entities(tags) == [tuple(entity) for entity in entities], tags
    counts = count_entities(case["predicted"], case["expected"])
    assert counts.precision == pytest.approx(case["precision"], abs=1e-12)
    assert counts.recall == pytest.approx(case["recall"], abs=1e-12)
    assert counts.f1 == pytest.approx(case["f1"], abs=1e-12)
    kinds = score_entity_kinds(case["predicted"], case["expected"])
    assert sum(score.expected for score in kinds) == counts.expected
    assert sum(score.predicted for score in kinds) == counts.predicted


def test_scores_of_each_label_by_hand() -> None:
    matrix = make_confusion_matrix(["a", "a", "b", "c"], ["a", "b", "b", "b"])
    scores = {score.label: (score.precision, score.recall, score.f1) for score in matrix.by_label()}
    assert scores["a"] == pytest.approx((50, 100, 200 / 3))
    assert scores["b"] == pytest.approx((100, 100 / 3, 50))
    assert scores["c"] == (0, 0, 0)  # predicted, never expected
    assert matrix.majority == ("b", 0.75)
    assert matrix.most_confused(1) == [Confusion("b", "a", 1)]
    assert [confusion.predicted for confusion in matrix.most_confused()] == ["a", "c"]


def test_a_tagger_that_finds_nothing_has_an_f1_of_zero() -> None:
    expected = [["O"] * 40 + ["B-person", "I-person"]]
    predicted = [["O"] * 42]
    matrix = make_confusion_matrix(predicted[0], expected[0])
    assert matrix.accuracy > 0.95
    assert count_entities(predicted, expected).f1 == 0
    assert matrix.matthews == 0


def test_entity_labels_are_recognised() -> None:
    assert has_entities({"O", "B-group", "I-group", "B-creative-work"})
    assert not has_entities({"O", "B-group", "NOUN"})
    assert not has_entities({"-LRB-", "NN", "O"})
    assert not has_entities({"B-", "O"})


def test_labels_that_do_not_match_are_refused() -> None:
    with pytest.raises(RegardError, match="2 predicted and 1 expected"):
        make_confusion_matrix(["a", "b"], ["a"])
    with pytest.raises(RegardError, match="0 predicted"):
        make_confusion_matrix([], [])
    with pytest.raises(RegardError, match="differ in number"):
        count_entities([["O"]], [["O", "O"]])
    with pytest.raises(RegardError, match="there are none"):
        count_entities([], [])


def test_the_interval_of_an_accuracy_is_the_binomial_one() -> None:
    """For independent texts the bootstrap approximates p ± 1.96 sqrt(p (1 - p) / n)."""
    predicted, expected = [["a"]] * 400, [["a"]] * 300 + [["b"]] * 100
    report = score_labels(predicted, expected)
    low, high = report.intervals["accuracy"]
    half_width = 196 * math.sqrt(0.75 * 0.25 / 400)
    assert (75 - low, high - 75) == pytest.approx((half_width, half_width), abs=0.8)
    assert report.scores["accuracy"] == Score(75.0, "accuracy|labels:2|n:400")
    assert (report.majority_label, report.majority_accuracy) == ("a", 75.0)
    assert score_labels(predicted, expected).intervals == report.intervals
    assert score_labels(predicted, expected, seed=1).intervals != report.intervals


def test_whole_sentences_are_resampled() -> None:
    """One sentence of 50 equal errors varies as one text, not as 50."""
    expected = [["A"] * 50] * 4
    predicted = [["B"] * 50, *expected[1:]]
    low, high = score_labels(predicted, expected).intervals["accuracy"]
    assert (low, high) == (25.0, 100.0)


def test_entities_are_scored_only_where_labels_mark_them() -> None:
    expected = [["B-PER", "I-PER", "O"], ["O", "B-LOC"]]
    report = score_labels([["B-PER", "I-PER", "O"], ["O", "O"]], expected, samples=50)
    assert report.scores["entity_f1"].value == pytest.approx(200 / 3)
    assert [(score.label, score.f1) for score in report.by_entity] == [("LOC", 0), ("PER", 100)]
    assert "entity_f1" not in score_labels([["N"]], [["V"]], samples=0).scores


def test_a_system_compared_with_itself_and_with_a_better_one() -> None:
    expected = [["a"], ["b"], ["c"]] * 30
    weak = [["a"]] * 90
    same = compare_labels(weak, weak, expected, samples=100)
    assert [(comparison.metric, comparison.difference, comparison.p) for comparison in same] == [
        ("accuracy", 0.0, 1.0),
        ("macro_f1", 0.0, 1.0),
        ("matthews", 0.0, 1.0),
    ]
    better = compare_labels(weak, expected, expected, samples=100)
    assert all(comparison.is_significant and comparison.difference > 0 for comparison in better)
    with pytest.raises(RegardError, match="differ in number"):
        compare_labels(weak[:1], expected, expected)
