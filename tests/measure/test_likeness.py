"""The quick chrF against sacreBLEU's own."""

import random

import pytest
from sacrebleu.metrics.chrf import CHRF

from regard.measure.likeness import likeness

WORDS = ["ein", "Hund", "läuft", "durch", "den", "Schnee", ".", "a", "犬", "  "]


def test_it_is_sacrebleus() -> None:
    chance, metric = random.Random(1), CHRF()
    texts = [" ".join(chance.choices(WORDS, k=chance.randrange(0, 9))) for _ in range(60)]
    different = set()
    for text in texts:
        for reference in texts:
            expected = metric.sentence_score(text, [reference]).score
            assert likeness(text, reference) == pytest.approx(expected, abs=1e-9)
            different.add(round(expected, 3))
    assert len(different) > 500
