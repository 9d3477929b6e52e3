"""Sentence-level chrF for many pairs of the same texts; equal to sacreBLEU's.

Minimum Bayes risk decoding compares n texts with each other: n^2 pairs per sentence. sacreBLEU counts the n-grams of
both texts for every pair; here the n-grams of a text are counted once and cached.
"""

from collections import Counter

MAX_ORDER = 6
BETA = 2  # recall counts twice as much as precision


def sentence_chrf(text: str, reference: str) -> float:
    """Compute the chrF of a text, 0 to 100.

    >>> round(sentence_chrf("the cat sat", "the cat sat down"), 1), sentence_chrf("a", "a"), sentence_chrf("", "a")
    (66.0, 100.0, 0.0)
    """
    return SentenceChrf()(text, reference)


class SentenceChrf:
    """Computes sentence-level chrF for many pairs; the n-gram counts of each text are cached."""

    def __init__(self) -> None:
        self._cache: dict[str, _Ngrams] = {}

    def __call__(self, text: str, reference: str) -> float:
        """Compute the chrF of a text, 0 to 100."""
        return _compute_chrf(self._count_ngrams(text), self._count_ngrams(reference))

    def _count_ngrams(self, text: str) -> "_Ngrams":
        if text not in self._cache:
            self._cache[text] = _Ngrams(text)
        return self._cache[text]


def _compute_chrf(hypothesis: "_Ngrams", reference: "_Ngrams") -> float:
    matches = [0] * MAX_ORDER
    for ngram in hypothesis.counts.keys() & reference.counts.keys():
        matches[len(ngram) - 1] += min(hypothesis.counts[ngram], reference.counts[ngram])
    orders = [
        n for n in range(MAX_ORDER) if hypothesis.totals[n] and reference.totals[n]
    ]  # short texts have no 6-grams
    precision = sum(matches[n] / hypothesis.totals[n] for n in orders)
    recall = sum(matches[n] / reference.totals[n] for n in orders)
    if not precision:
        return 0.0
    return 100 * (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall) / len(orders)


class _Ngrams:
    """The character n-grams (n = 1 to 6) of a text without spaces, and their number per n."""

    def __init__(self, text: str) -> None:
        characters = "".join(text.split())
        self.totals = [max(0, len(characters) - n) for n in range(MAX_ORDER)]
        self.counts = Counter(characters[i : i + n + 1] for n in range(MAX_ORDER) for i in range(self.totals[n]))
