"""BLEU and chrF by sacreBLEU, and exact match."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from regard.base.errors import RegardError
from regard.measure.metric import References, Score, check_pairs, reference_lists, reference_streams

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

BleuTokenizer = Literal["13a", "intl", "char", "zh", "none"]


def bleu(
    hypotheses: Sequence[str], references: References, tokenize: BleuTokenizer = "13a", lowercase: bool = False
) -> Score:
    """Compute corpus BLEU (Papineni et al. 2002), n-grams up to 4.

    >>> bleu(["the cat sat on the mat"], ["the cat sat on the mat"]).value
    100.0
    """
    return score_corpus(make_bleu_metric(tokenize, lowercase), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: References, word_order: int = 0, lowercase: bool = False) -> Score:
    """Compute corpus chrF (Popovic 2015), character n-grams up to 6; `word_order=2` makes it chrF++.

    >>> chrf(["abcdef"], ["ghijkl"]).value
    0.0
    """
    return score_corpus(make_chrf_metric(word_order, lowercase), hypotheses, references)


def make_bleu_metric(tokenize: BleuTokenizer = "13a", lowercase: bool = False) -> "Metric":
    """Create sacreBLEU's BLEU metric."""
    from sacrebleu.metrics.bleu import BLEU  # imported on first use: the import is slow

    if tokenize not in get_args(BleuTokenizer):
        raise RegardError(
            f"Unknown BLEU tokenizer '{tokenize}'.",
            hint=f"Use one of {', '.join(get_args(BleuTokenizer))}; sacreBLEU downloads files for the others.",
        )
    # `force` silences a warning about tokenized text that sacreBLEU would print at every validation.
    return BLEU(tokenize=tokenize, lowercase=lowercase, force=True)


def make_chrf_metric(word_order: int = 0, lowercase: bool = False) -> "Metric":
    """Create sacreBLEU's chrF metric."""
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=word_order, lowercase=lowercase)


def score_corpus(metric: "Metric", hypotheses: Sequence[str], references: References) -> Score:
    """Score a corpus with a metric of sacreBLEU."""
    check_pairs(hypotheses, references)
    value = metric.corpus_score(list(hypotheses), reference_streams(references)).score  # type: ignore[arg-type] # None is allowed
    # sacreBLEU may return 100.00000000000004; only an error rate exceeds 100.
    return Score(value if metric.__class__.__name__ == "TER" else min(value, 100.0), str(metric.get_signature()))


def exact_match(hypotheses: Sequence[str], references: References) -> Score:
    """Compute the percentage of texts that equal their reference, or one of their references.

    >>> exact_match(["JUMP JUMP", "WALK"], ["JUMP JUMP", "RUN"])
    Score(value=50.0, signature='exact_match|case:mixed|n:2')
    """
    check_pairs(hypotheses, references)
    correct = sum(text in candidates for text, candidates in zip(hypotheses, reference_lists(references), strict=True))
    return Score(100.0 * correct / len(references), f"exact_match|case:mixed|n:{len(references)}")
