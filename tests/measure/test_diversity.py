"""Diversity of outputs."""

import pytest

from regard.base.errors import RegardError
from regard.measure import distinct, self_bleu
from regard.measure.diversity import max_ngram_count


def test_diversity() -> None:
    assert distinct(["a b a b", "a b"], 2).value == pytest.approx(100 * 2 / 4)  # ab ba ab, ab
    assert distinct(["a b c"], 1).value == 100.0
    assert self_bleu([["a b c d e", "a b c d e", "v w x y z"]]).value == pytest.approx(200 / 3)
    some = self_bleu([["a b c d e", "a b c d f"]])
    assert 0 < some.value < 100
    assert "eff:yes" in some.signature
    assert max_ngram_count("a b a b a", 2) == 2
    assert max_ngram_count("a b a b a", 1) == 3
    with pytest.raises(RegardError, match="No text has 3 or more words"):
        distinct(["a b"], 3)
    with pytest.raises(RegardError, match="size must be at least 1, got 0"):
        distinct(["a b"], 0)
    with pytest.raises(RegardError, match="Group 2 has fewer than 2 texts"):
        self_bleu([["a", "b"], ["a"]])
    with pytest.raises(RegardError, match="no texts to score"):
        self_bleu([])
    with pytest.raises(RegardError, match="Expected a list"):
        distinct("a b")
