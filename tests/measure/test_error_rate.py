"""Error rates: the fewest edits, the best of several references."""

import itertools
import random

import pytest
import sacrebleu

from regard.base.errors import RegardError
from regard.measure import bleu, chrf, exact_match, ter, wer
from regard.measure.error_rate import cer, levenshtein
from regard.measure.metric import reference_lists, reference_streams

HYPOTHESES = ["the mat sat on", "a dog runs fast today and tomorrow", "nothing alike"]
REFERENCES = ["sat on the mat", "a dog ran fast today", "completely different words here"]


def naive_levenshtein(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    same = naive_levenshtein(a[1:], b[1:]) + (a[0] != b[0])
    return min(same, naive_levenshtein(a[1:], b) + 1, naive_levenshtein(a, b[1:]) + 1)


def test_distance_is_the_fewest_edits() -> None:
    drawn = random.Random(1)
    for _ in range(60):
        one, other = ("".join(drawn.choices("abc", k=drawn.randrange(6))) for _ in range(2))
        assert levenshtein(one, other) == naive_levenshtein(one, other) == levenshtein(other, one)


def test_error_rate_counts_words_of_the_reference() -> None:
    assert wer(["a b", "c"], ["a b c d", "c"]).value == pytest.approx(100 * 2 / 5)
    assert wer(["a b c d e"], ["x"]).value == pytest.approx(500)  # more than 100 is possible
    with pytest.raises(RegardError, match="contain no words"):
        wer(["a"], [""])


def test_of_several_references_the_best_counts() -> None:
    assert wer(["K AE T"], [("K AA T S", "K AE T", "D AO G")]).value == 0.0
    assert wer(["a b"], [("a c", "a b c")]).value == pytest.approx(100 / 3)  # equally near: the longest
    assert exact_match(["a", "b"], [("x", "a"), ("c",)]).value == 50.0
    for measure in (bleu, chrf):
        assert measure(["a b c d e", "f g h i"], [("x y", "a b c d e"), "f g h i"]).value == 100.0
    assert ter(["a b c d e"], [("x y", "a b c d e")]).value == 0.0
    assert "nrefs:var" in bleu(["a", "b"], [("x", "a"), ("c",)]).signature


def test_references_that_are_missing_are_refused() -> None:
    assert reference_lists(["a", ["b", "c"]]) == [("a",), ("b", "c")]
    assert reference_streams([("a",), ("b", "c"), ("d",)]) == [["a", "b", "d"], [None, "c", None]]
    with pytest.raises(RegardError, match="Text 2 has no reference"):
        exact_match(["a", "b"], ["a", ()])
    for measure, (one, other) in itertools.product(
        (ter, wer), ((HYPOTHESES, REFERENCES[:2]), (HYPOTHESES[:1], REFERENCES))
    ):
        with pytest.raises(RegardError, match="differs from the number of references"):
            measure(one, other)


def test_ter_is_sacrebleu_s() -> None:
    score = ter(HYPOTHESES, REFERENCES)
    assert score.value == pytest.approx(sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score)
    assert score.signature.startswith("nrefs:1|case:lc|tok:tercom|")
    assert ter(["a b c d e f"], ["x"]).value > 100


def test_characters_need_pairs() -> None:
    with pytest.raises(RegardError, match="differs from the number of references"):
        cer(["one"], ["one", "two"])
