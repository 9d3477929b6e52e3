"""Scores are sacreBLEU's, with its signatures; what cannot be compared is refused."""

import pytest
import sacrebleu

from regard.base.errors import RegardError
from regard.measure import Score, bleu, chrf, exact_match

HYPOTHESES = ["Der Hund rennt schnell über die grüne Wiese.", "eine Katze schläft auf dem Sofa ."]
REFERENCES = ["Der Hund läuft schnell über die grüne Wiese.", "Eine Katze schläft auf dem alten Sofa ."]


def test_bleu_is_sacrebleu_s() -> None:
    score = bleu(HYPOTHESES, REFERENCES)
    assert score.value == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    assert score.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    lower = bleu(HYPOTHESES, REFERENCES, tokenize="char", lowercase=True)
    assert "case:lc" in lower.signature
    assert "tok:char" in lower.signature
    assert lower.value == pytest.approx(
        sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="char", lowercase=True).score
    )


def test_chrf_is_sacrebleu_s() -> None:
    score = chrf(HYPOTHESES, REFERENCES)
    assert score.value == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score)
    assert score.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")
    assert "nw:2" in chrf(HYPOTHESES, REFERENCES, word_order=2).signature
    assert "case:lc" in chrf(HYPOTHESES, REFERENCES, lowercase=True).signature


def test_the_same_is_a_hundred() -> None:
    for measure in (bleu, chrf, exact_match):
        assert measure(REFERENCES, REFERENCES).value == 100.0


@pytest.mark.parametrize("measure", [bleu, chrf, exact_match])
def test_texts_without_their_references_are_refused(measure) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RegardError, match=r"texts \(2\) .* references \(1\)"):
        measure(HYPOTHESES, REFERENCES[:1])
    with pytest.raises(RegardError, match=r"texts \(1\) .* references \(2\)"):
        measure(HYPOTHESES[:1], REFERENCES)
    with pytest.raises(RegardError, match="no texts to score"):
        measure([], [])
    with pytest.raises(RegardError, match="Expected a list"):
        measure("text", REFERENCES)


def test_a_way_of_cutting_that_needs_a_download_is_refused() -> None:
    with pytest.raises(RegardError, match="Unknown BLEU tokenizer 'flores200'"):
        bleu(HYPOTHESES, REFERENCES, tokenize="flores200")  # type: ignore[arg-type]


def test_exact_match_counts_characters_case_and_spaces() -> None:
    assert exact_match(["a", "A", "a ", "b"], ["a", "a", "a", "b"]).value == 50.0
    assert str(Score(12.5, "s")) == "12.50 (s)"
