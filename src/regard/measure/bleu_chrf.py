"""BLEU and chrF: how many n-grams of words or characters a translation shares with a reference. By sacreBLEU."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from regard.base.errors import RegardError
from regard.measure.score import References, Score, check_pairs, reference_streams

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

BleuTokenizer = Literal["13a", "intl", "char", "zh", "none"]


def bleu(
    hypotheses: Sequence[str], references: References, tokenize: BleuTokenizer = "13a", lowercase: bool = False
) -> Score:
    """The BLEU of a whole corpus (Papineni et al. 2002), n-grams up to 4.

    >>> bleu(["the cat sat on the mat"], ["the cat sat on the mat"]).value
    100.0
    """
    return score_corpus(make_bleu_metric(tokenize, lowercase), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: References, word_order: int = 0, lowercase: bool = False) -> Score:
    """The chrF of a whole corpus (Popovic 2015), characters up to 6-grams; `words` = 2 makes it chrF++.

    >>> chrf(["abcdef"], ["ghijkl"]).value
    0.0
    """
    return score_corpus(make_chrf_metric(word_order, lowercase), hypotheses, references)


def make_bleu_metric(tokenize: BleuTokenizer = "13a", lowercase: bool = False) -> "Metric":
    """SacreBLEU's BLEU."""
    from sacrebleu.metrics.bleu import BLEU  # only when it is needed: it takes a while

    if tokenize not in get_args(BleuTokenizer):
        raise RegardError(
            f"BLEU cannot cut words by '{tokenize}' here.",
            fix=f"Use one of {', '.join(get_args(BleuTokenizer))}; sacreBLEU's others need a download.",
        )
    # `force` silences a hint about tokenised text that would be printed at every validation.
    return BLEU(tokenize=tokenize, lowercase=lowercase, force=True)


def make_chrf_metric(word_order: int = 0, lowercase: bool = False) -> "Metric":
    """SacreBLEU's chrF."""
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=word_order, lowercase=lowercase)


def score_corpus(metric: "Metric", hypotheses: Sequence[str], references: References) -> Score:
    """The score of a corpus by one of sacreBLEU's metrics."""
    check_pairs(hypotheses, references)
    value = metric.corpus_score(list(hypotheses), reference_streams(references)).score  # type: ignore[arg-type] # None is allowed
    # sacreBLEU's 100 may be 100.00000000000004, and only an error rate can be above
    return Score(value if metric.__class__.__name__ == "TER" else min(value, 100.0), str(metric.get_signature()))
