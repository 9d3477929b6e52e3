"""Scores of entities, equal to seqeval's."""

from typing import Any

import pytest

from regard.measure.classification import make_confusion_matrix
from regard.measure.entities import count_entities, find_entities, has_entities, score_entity_kinds
from tests.measure.factories import CASES


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
