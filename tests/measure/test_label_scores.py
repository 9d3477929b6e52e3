"""Scores of labels: equal to scikit-learn's and seqeval's, which `make_label_fixtures` froze."""

import math

import pytest

from regard.base.errors import RegardError
from regard.measure.label_scores import compare_labels, score_labels
from regard.measure.metric import Score


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
    with pytest.raises(RegardError, match="numbers of predicted and expected labels differ"):
        compare_labels(weak[:1], expected, expected)
