"""n-gram language models with interpolated modified Kneser-Ney smoothing (Chen and Goodman 1999).

An n-gram model predicts a token from the n - 1 tokens before it:

    P_n(w | h) = max(c(hw) - D(c(hw)), 0) / sum_v c(hv) + g(h) P_(n-1)(w | h')

h' is the context h without its first token. The highest order takes c from the text. A lower order takes for c(hw) the
number of different tokens that precede hw: "Francisco" is frequent, but follows only "San". D is one of three
discounts, for counts of 1, 2 and more; g(h) is the share that the discounts set free; P_0 is uniform.

The n-grams of each order are one sorted array of integers, `index of the first n - 1 tokens * vocabulary + last token`:
looking up all positions of a text is one binary search per order.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.base.errors import RegardError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
MISSING = -1  # the index of an n-gram that does not occur


@dataclass(frozen=True)
class NgramOrder:
    """The n-grams of one length."""

    keys: IntArray
    """(G) sorted; of n-gram i: index of its first n - 1 tokens * vocabulary + its last token."""
    shares: FloatArray
    """(G) discounted count / total of the context: the first term of P."""
    backoff: FloatArray
    """(C) g(h) of each n-gram h of the order below; 1 where h begins no n-gram of this order."""


class NgramModel:
    """An n-gram language model.

    Args:
        orders: From unigrams to n-grams.
        vocabulary: Number of different tokens.
    """

    def __init__(self, orders: list[NgramOrder], vocabulary: int) -> None:
        self.orders = orders
        self.vocabulary = vocabulary

    @classmethod
    def fit(cls, tokens: ArrayLike, n: int, vocabulary: int) -> Self:
        """Count the n-grams of a text.

        Args:
            tokens: The token ids of the whole text (T); n-grams cross the ends of its lines.
            n: Length of the longest n-grams; 1 is a bag of words.
            vocabulary: Number of different tokens; ids are below it.

        Raises:
            RegardError: n is below 1, the text is shorter than n, or an id is outside the vocabulary.
        """
        text = _check_tokens(tokens, vocabulary)
        if n < 1 or len(text) < n:
            message = f"{n}-grams cannot be counted in a text of {len(text):,} tokens."
            raise RegardError(message, hint="Choose n from 1 to the length of the text.")
        indices = np.zeros(len(text) + 1, np.int64)  # of the k-gram that starts at each position; the empty one is 0
        counted = list[tuple[IntArray, IntArray]]()  # keys and counts of each order
        suffixes = list[IntArray]()  # of each n-gram: the index of its last n - 1 tokens
        for k in range(n):
            keys = indices[:-1] * vocabulary + text[k:]  # (T - k)
            unique, first, longer, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
            suffixes.append(indices[1:][first])
            counted.append((unique, counts))
            indices = longer
        orders, contexts = list[NgramOrder](), 1
        for (keys, counts), longer_suffixes in zip(counted, [*suffixes[1:], None], strict=True):
            if longer_suffixes is not None:  # a lower order counts the different tokens before its n-grams
                counts = np.bincount(longer_suffixes, minlength=len(keys))
            orders.append(_discount(keys, counts, contexts, vocabulary))
            contexts = len(keys)
        return cls(orders, vocabulary)

    def logprobs(self, tokens: ArrayLike) -> FloatArray:
        """Return the log-probability of each token of a text, given the tokens before it: (T) -> (T)."""
        text = _check_tokens(tokens, self.vocabulary)
        probs = np.full(len(text), 1 / self.vocabulary)
        indices = np.zeros(len(text), np.int64)  # of the n-gram of the order below that ends at each position
        for k, order in enumerate(self.orders):
            contexts = indices if k == 0 else np.concatenate(([MISSING], indices[:-1]))
            places = _find(order.keys, np.where(contexts == MISSING, MISSING, contexts * self.vocabulary + text))
            backoff = np.where(contexts == MISSING, 1.0, order.backoff[contexts])
            probs = np.where(places == MISSING, 0.0, order.shares[places]) + backoff * probs
            indices = places
        return np.log(probs)

    def next_logprobs(self, contexts: ArrayLike) -> FloatArray:
        """Return the log-probabilities of all tokens after each context: (R, T) -> (R, vocabulary)."""
        rows = np.asarray(contexts, np.int64)
        probs = np.full((len(rows), self.vocabulary), 1 / self.vocabulary)
        for k, order in enumerate(self.orders[: rows.shape[1] + 1]):
            for row, p in zip(rows, probs, strict=True):
                context = self._find_context(row[len(row) - k :])
                if context == MISSING:
                    continue
                start, end = np.searchsorted(order.keys, (context * self.vocabulary, (context + 1) * self.vocabulary))
                p *= order.backoff[context]
                p[order.keys[start:end] - context * self.vocabulary] += order.shares[start:end]
        return np.log(probs)

    def _find_context(self, tokens: IntArray) -> int:
        index = 0
        for order, token in zip(self.orders, tokens, strict=False):
            index = int(_find(order.keys, np.array([index * self.vocabulary + token]))[0])
            if index == MISSING:
                break
        return index


def _discount(keys: IntArray, counts: IntArray, contexts: int, vocabulary: int) -> NgramOrder:
    """Return the shares and the backoff weights of one order."""
    frequencies = [int(np.count_nonzero(counts == k)) for k in (1, 2, 3, 4)]
    discounts = np.array([0.0, *_estimate_discounts(frequencies)])
    amounts = np.minimum(discounts[np.minimum(counts, 3)], counts)  # (G)
    context = keys // vocabulary  # (G) the empty context of unigrams has the index 0
    totals = np.bincount(context, counts, minlength=contexts)  # (C)
    freed = np.bincount(context, amounts, minlength=contexts)
    backoff = np.divide(freed, totals, out=np.ones(contexts), where=totals > 0)
    shares = np.divide(counts - amounts, totals[context], out=np.zeros(len(keys)), where=totals[context] > 0)
    return NgramOrder(keys, shares, backoff)


def _estimate_discounts(frequencies: list[int]) -> list[float]:
    """Return the discounts of the counts 1, 2 and 3 or more, from the number of n-grams that occur 1 to 4 times.

    A text that is too small or too regular for the estimate, D_k = k - (k + 1) Y n_(k+1) / n_k, gets k / (k + 1).
    """
    n1, n2 = frequencies[:2]
    y = n1 / (n1 + 2 * n2) if n1 + n2 else 0.0
    discounts = []
    for k in (1, 2, 3):
        n_k, following = frequencies[k - 1], frequencies[k]
        value = k - (k + 1) * y * following / n_k if n_k else 0.0
        discounts.append(value if 0 < value <= k else k / (k + 1))
    return discounts


def _find(keys: IntArray, queries: IntArray) -> IntArray:
    """Return the index of each query in the sorted keys, or MISSING."""
    places = np.searchsorted(keys, queries)
    places[places == len(keys)] = 0
    return np.where(keys[places] == queries, places, MISSING)


def _check_tokens(tokens: ArrayLike, vocabulary: int) -> IntArray:
    text = np.asarray(tokens, np.int64)
    if text.ndim != 1 or (len(text) and not 0 <= text.min() <= text.max() < vocabulary):
        raise RegardError(
            f"The tokens of a text are one row of ids from 0 to {vocabulary - 1:,}.", hint="Give the ids of one text."
        )
    return text
