"""Scores by length and by frequency, and how different texts are."""

import pytest

from regard.base.errors import RegardError
from regard.measure import bleu, chrf, count_words, score_by_frequency, score_by_length


def test_by_length_scores_each_bucket_alone() -> None:
    sources = ["a", "a b c d e", "a b c d e f", "a " * 60, ""]
    hypotheses = ["eins", "eins zwei drei", "falsch", "viele Worte", "leer"]
    references = ["eins", "eins zwei vier", "richtig", "viele Worte", "voll"]
    found = score_by_length(hypotheses, references, sources)
    assert [(one.low, one.high, one.texts, one.exact_match) for one in found] == [
        (1, 5, 3, pytest.approx(100 / 3)),
        (6, 10, 1, 0.0),
        (51, None, 1, 100.0),
    ]
    some = [hypotheses[place] for place in (0, 1, 4)], [references[place] for place in (0, 1, 4)]
    assert found[0].bleu == bleu(*some).value
    assert found[0].chrf == chrf(*some).value
    for wrong in (sources[:4], [*sources, "more"]):
        with pytest.raises(RegardError, match="differs from the number of references"):
            score_by_length(hypotheses, references, wrong)
    with pytest.raises(RegardError, match="edges must be increasing"):
        score_by_length(hypotheses, references, sources, edges=(5, 1))


def test_by_frequency_counts_each_occurrence_once() -> None:
    counts = count_words(["the " * 1000, "dog " * 10, "cat.", "mouse"])
    assert counts["the"] == 1000
    assert counts["."] == 1
    found = score_by_frequency(["the the the dog bird", "cat"], ["the the dog dog cat", "dog"], counts)
    assert [(one.low, one.high, one.references, one.hypotheses, one.correct) for one in found] == [
        (0, 0, 0, 1, 0),  # bird
        (1, 9, 1, 1, 0),  # cat: written, but in another text
        (10, 99, 3, 1, 1),  # dog
        (1000, None, 2, 3, 2),  # the
    ]
    assert found[2].f1 == pytest.approx(100 * 2 * 1 / (3 + 1))
    with pytest.raises(RegardError, match="differs from the number of references"):
        score_by_frequency(["the"], ["the", "dog"], counts)
