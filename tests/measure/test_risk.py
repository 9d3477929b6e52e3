"""Thresholds with a guarantee."""

import math

import numpy as np
import pytest

from regard.measure.risk import binomial_tail, choose_threshold, fit_logistic, upper_bound


@pytest.mark.parametrize(("most", "count", "probability"), [(0, 5, 0.3), (3, 20, 0.1), (20, 20, 0.9), (7, 50, 0.5)])
def test_binomial_tail_is_the_sum_of_the_probabilities(most: int, count: int, probability: float) -> None:
    terms = [math.comb(count, k) * probability**k * (1 - probability) ** (count - k) for k in range(most + 1)]
    assert binomial_tail(most, count, probability) == pytest.approx(sum(terms))


@pytest.mark.parametrize(("failed", "count"), [(0, 10), (3, 40), (39, 40)])
def test_upper_bound_has_the_confidence_as_tail(failed: int, count: int) -> None:
    assert binomial_tail(failed, count, upper_bound(failed, count, 0.9)) == pytest.approx(0.1, abs=1e-6)


def test_choose_threshold_accepts_all_if_nothing_fails_and_none_if_all_fail() -> None:
    scores = np.linspace(0, 1, 100)
    rule = choose_threshold(scores, np.zeros(100), 0.1, 0.9)
    assert rule is not None
    assert (rule.threshold, rule.accepted, rule.failures) == (0.0, 1.0, 0.0)
    assert choose_threshold(scores, np.ones(100), 0.1, 0.9) is None
    assert choose_threshold(scores[:20], np.zeros(20), 0.1, 0.9) is None  # 0 of 20 do not prove 10 %


def test_choose_threshold_accepts_equal_scores_together() -> None:
    scores, failed = np.repeat([1.0, 0.0], [50, 50]), np.repeat([0, 1], [50, 50])
    rule = choose_threshold(scores, failed, 0.1, 0.9)
    assert rule is not None
    assert (rule.threshold, rule.accepted) == (1.0, 0.5)


def test_choose_threshold_keeps_the_promise_as_often_as_it_says() -> None:
    generator, broken = np.random.default_rng(0), 0
    for _ in range(200):
        scores = generator.random(600)
        rule = choose_threshold(scores, generator.random(600) > scores**0.3, 0.1, 0.9)
        if rule is not None:  # P(failure | score >= s) is known exactly
            s = rule.threshold
            broken += 1 - (1 - s**1.3) / (1.3 * (1 - s)) > 0.1
    assert broken <= 30  # 20 are expected at most; 30 has a probability of 1 %


def test_fit_logistic_finds_the_weights_of_a_sample() -> None:
    generator = np.random.default_rng(1)
    features = generator.normal(size=(20_000, 2))
    p = 1 / (1 + np.exp(-(0.5 + features @ np.array([2.0, -1.0]))))
    weights = fit_logistic(features, generator.random(20_000) < p)
    assert weights == pytest.approx([0.5, 2.0, -1.0], abs=0.1)
