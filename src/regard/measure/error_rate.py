"""Word, character and translation error rates. Lower is better; values above 100 are possible."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.base.errors import RegardError
from regard.measure.bleu_chrf import score_corpus
from regard.measure.metric import References, Score, check_pairs, reference_lists

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


def levenshtein(a: Sequence[object], b: Sequence[object]) -> int:
    """Compute the edit distance: the fewest substitutions, insertions and deletions (Levenshtein 1965).

    >>> levenshtein("kitten", "sitting"), levenshtein("K AE T".split(), "K AA T S".split())
    (3, 2)
    """
    if a == b:
        return 0
    previous = list(range(len(b) + 1))  # distances between an empty sequence and the prefixes of b
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b):
            row.append(min(previous[j] + (x != y), previous[j + 1] + 1, row[j] + 1))
        previous = row
    return previous[-1]


def wer(hypotheses: Sequence[str], references: References) -> Score:
    """Compute the word error rate: edits per 100 words of the references (a phoneme error rate on phonemes).

    Words are separated by white space. With several references, the nearest one is used; ties go to the longest.

    >>> wer(["K AE T", "D AO G Z"], ["K AE T", ("D AA G", "D AO G")]).value.__round__(2)
    16.67
    """
    check_pairs(hypotheses, references)
    edits = words = 0
    for text, candidates in zip(hypotheses, reference_lists(references), strict=True):
        distances = [
            (levenshtein(text.split(), reference.split()), -len(reference.split())) for reference in candidates
        ]
        fewest, length = min(distances)
        edits, words = edits + fewest, words - length
    if not words:
        raise RegardError("The references contain no words.", hint="Pass references with text.")
    return Score(100.0 * edits / words, f"wer|case:mixed|tok:space|n:{len(references)}")


def cer(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Compute the character error rate: edits per 100 characters of the references.

    >>> cer(["seven", "to"], ["seven", "two"]).value
    12.5
    """
    check_pairs(hypotheses, references)
    edits = sum(levenshtein(text, reference) for text, reference in zip(hypotheses, references, strict=True))
    characters = sum(map(len, references))
    if not characters:
        raise RegardError("The references contain no characters.", hint="Pass references with text.")
    return Score(100.0 * edits / characters, f"cer|case:mixed|n:{len(references)}")


def ter(hypotheses: Sequence[str], references: References) -> Score:
    """Compute the translation edit rate (Snover et al. 2006): moving a sequence of words counts as one edit.

    >>> ter(["the mat sat on"], ["sat on the mat"]).value < wer(["the mat sat on"], ["sat on the mat"]).value
    True
    """
    return score_corpus(make_ter_metric(), hypotheses, references)


def make_ter_metric() -> "Metric":
    """Create sacreBLEU's TER metric."""
    from sacrebleu.metrics.ter import TER

    return TER()
