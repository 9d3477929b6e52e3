"""n-gram models: equal to the formula written out with dictionaries, and a distribution after every context."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from examples.before.ngrams import NgramModel

from regard.base.errors import RegardError

Gram = tuple[int, ...]


def make_text(length: int, vocabulary: int, seed: int) -> list[int]:
    """Return a text whose tokens are unequally frequent and depend on the one before."""
    rng = np.random.default_rng(seed)
    text = [0]
    for _ in range(length - 1):
        text.append(int(text[-1] % 7 * 11 + min(rng.zipf(1.5), 10**6)) % vocabulary)
    return text


def make_reference(text: Sequence[int], n: int, vocabulary: int) -> Callable[[Gram, int], float]:
    """Return P(token | context) by the formula, one n-gram after the other."""
    grams = {k: [tuple(text[i : i + k]) for i in range(len(text) - k + 1)] for k in range(1, n + 1)}
    counts: dict[int, Counter[Gram]] = {n: Counter(grams[n])}
    for k in range(1, n):
        counts[k] = Counter(gram[1:] for gram in set(grams[k + 1]))
    discounts = {}
    for k, counter in counts.items():
        n_ = Counter(counter.values())
        y = n_[1] / (n_[1] + 2 * n_[2])
        discounts[k] = [0, 1 - 2 * y * n_[2] / n_[1], 2 - 3 * y * n_[3] / n_[2], 3 - 4 * y * n_[4] / n_[3]]
    followers: dict[Gram, dict[int, int]] = defaultdict(dict)
    for counter in counts.values():
        for gram, count in counter.items():
            followers[gram[:-1]][gram[-1]] = count

    def probability(context: Gram, token: int) -> float:
        shorter = probability(context[1:], token) if context else 1 / vocabulary
        if context not in followers:
            return shorter
        seen, discount = followers[context], discounts[len(context) + 1]
        total = sum(seen.values())
        freed = sum(discount[min(count, 3)] for count in seen.values()) / total
        count = seen.get(token, 0)
        return (count - discount[min(count, 3)]) / total + freed * shorter

    return probability


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_probabilities_are_those_of_the_formula(n: int) -> None:
    vocabulary = 1000
    text, other = make_text(3000, vocabulary, seed=1), make_text(200, vocabulary, seed=2)
    reference = make_reference(text, n, vocabulary)
    expected = [math.log(reference(tuple(other[max(0, i - n + 1) : i]), token)) for i, token in enumerate(other)]
    model = NgramModel.fit(text, n, vocabulary)
    np.testing.assert_allclose(model.logprobs(other), expected, rtol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_probabilities_after_a_context_sum_to_one(n: int) -> None:
    vocabulary = 30
    text, other = make_text(800, vocabulary, seed=3), make_text(60, vocabulary, seed=4)
    model = NgramModel.fit(text, n, vocabulary)
    contexts = np.array([other[i - 6 : i] for i in range(6, len(other))])
    logprobs = model.next_logprobs(contexts)  # (R, V)
    np.testing.assert_allclose(np.exp(logprobs).sum(axis=1), 1)
    np.testing.assert_allclose(logprobs[np.arange(len(contexts)), other[6:]], model.logprobs(other)[6:])


def test_a_text_too_small_for_an_estimate_still_gives_a_distribution() -> None:
    model = NgramModel.fit([0, 1, 0, 1, 0], 3, vocabulary=4)
    logprobs = model.next_logprobs([[0, 1], [3, 3], [1, 0]])
    np.testing.assert_allclose(np.exp(logprobs).sum(axis=1), 1)
    assert logprobs[0].argmax() == 0
    assert logprobs[2].argmax() == 1
    assert np.isfinite(logprobs).all()


@pytest.mark.parametrize(("tokens", "n"), [([0, 1], 3), ([0, 1], 0), ([0, 9], 1), ([-1], 1), ([[0, 1]], 1)])
def test_what_cannot_be_counted_is_refused(tokens: list[int], n: int) -> None:
    with pytest.raises(RegardError):
        NgramModel.fit(tokens, n, vocabulary=4)
