"""The quick chrF against sacreBLEU's own."""

import random

import pytest
from sacrebleu.metrics.chrf import CHRF

from regard.measure.sentence_chrf import sentence_chrf

WORDS = ["ein", "Hund", "läuft", "durch", "den", "Schnee", ".", "a", "犬", "  "]


def test_it_is_sacrebleus() -> None:
    rng, metric = random.Random(1), CHRF()
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(0, 9))) for _ in range(60)]
    scores = set()
    for text in texts:
        for reference in texts:
            expected = metric.sentence_score(text, [reference]).score
            assert sentence_chrf(text, reference) == pytest.approx(expected, abs=1e-9)
            scores.add(round(expected, 3))
    assert len(scores) > 500
