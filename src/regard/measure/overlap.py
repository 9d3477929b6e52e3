"""BLEU and chrF: how many n-grams of words or characters a translation shares with a reference. By sacreBLEU."""

from collections.abc import Sequence
from typing import Literal, get_args

from regard.base.errors import RegardError
from regard.measure.score import Score, check_pairs

Tokenize = Literal["13a", "intl", "char", "zh", "none"]


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: Tokenize = "13a", lowercase: bool = False
) -> Score:
    """The BLEU of a whole corpus (Papineni et al. 2002), n-grams up to 4.

    >>> bleu(["the cat sat on the mat"], ["the cat sat on the mat"]).value
    100.0
    """
    from sacrebleu.metrics.bleu import BLEU  # only when it is needed: it takes a while

    if tokenize not in get_args(Tokenize):
        raise RegardError(
            f"BLEU cannot cut words by '{tokenize}' here.",
            fix=f"Use one of {', '.join(get_args(Tokenize))}; sacreBLEU's others need a download.",
        )
    check_pairs(hypotheses, references)
    # `force` silences a hint about tokenised text that would be printed at every validation.
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    return _score(metric.corpus_score(list(hypotheses), [list(references)]).score, str(metric.get_signature()))


def chrf(hypotheses: Sequence[str], references: Sequence[str], words: int = 0, lowercase: bool = False) -> Score:
    """The chrF of a whole corpus (Popovic 2015), characters up to 6-grams; `words` = 2 makes it chrF++.

    >>> chrf(["abcdef"], ["ghijkl"]).value
    0.0
    """
    from sacrebleu.metrics.chrf import CHRF

    check_pairs(hypotheses, references)
    metric = CHRF(word_order=words, lowercase=lowercase)
    return _score(metric.corpus_score(list(hypotheses), [list(references)]).score, str(metric.get_signature()))


def _score(value: float, signature: str) -> Score:
    return Score(min(value, 100.0), signature)  # sacreBLEU's 100 may be 100.00000000000004
