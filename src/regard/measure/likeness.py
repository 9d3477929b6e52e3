"""How alike two sentences are: sacreBLEU's chrF of one against the other, made quick for many pairs.

Minimum Bayes risk compares n texts with each other, n^2 pairs for each sentence. sacreBLEU counts the n-grams of both
texts anew for every pair; here those of a text are counted once and remembered. The figures are the same.
"""

from collections import Counter

ORDERS = 6
BETA = 2  # recall counts twice as much as precision


def likeness(text: str, reference: str) -> float:
    """The chrF of a text, 0 to 100.

    >>> round(likeness("the cat sat", "the cat sat down"), 1), likeness("one", "one"), likeness("", "one")
    (66.0, 100.0, 0.0)
    """
    return Likeness()(text, reference)


class Likeness:
    """The same for many pairs: what was counted of a text is remembered as long as this is."""

    def __init__(self) -> None:
        self._known: dict[str, _Ngrams] = {}

    def __call__(self, text: str, reference: str) -> float:
        """The chrF of a text, 0 to 100."""
        return _chrf(self._counted(text), self._counted(reference))

    def _counted(self, text: str) -> "_Ngrams":
        if text not in self._known:
            self._known[text] = _Ngrams(text)
        return self._known[text]


def _chrf(mine: "_Ngrams", theirs: "_Ngrams") -> float:
    both = [0] * ORDERS
    for ngram in mine.counts.keys() & theirs.counts.keys():
        both[len(ngram) - 1] += min(mine.counts[ngram], theirs.counts[ngram])
    used = [n for n in range(ORDERS) if mine.totals[n] and theirs.totals[n]]  # short texts have no 6-grams
    precision = sum(both[n] / mine.totals[n] for n in used)
    recall = sum(both[n] / theirs.totals[n] for n in used)
    if not precision:
        return 0.0
    return 100 * (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall) / len(used)


class _Ngrams:
    """All sequences of 1 to 6 characters of a text without its spaces, and how many of each length there are."""

    def __init__(self, text: str) -> None:
        letters = "".join(text.split())
        self.totals = [max(0, len(letters) - n) for n in range(ORDERS)]
        self.counts = Counter(letters[i : i + n + 1] for n in range(ORDERS) for i in range(self.totals[n]))
