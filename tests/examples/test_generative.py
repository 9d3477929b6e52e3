"""Generative models whose density is a sum over all of their data."""

import math

import pytest
import torch
from examples.generative.run import (
    count_images,
    draw_symbols,
    filter_readings,
    fit,
    forward,
    log_gaussian,
    mix,
    show_states,
    sum_paths,
    transform,
    weigh_energies,
)

from regard.lectures.learned import draw_patterns


@pytest.mark.parametrize(("model", "sizes"), [(weigh_energies, (4, 4)), (mix, (2, 8)), (transform, (4,))])
def test_probabilities_of_all_images_sum_to_one(model, sizes) -> None:  # type: ignore[no-untyped-def]
    parameters = [torch.randn(size, dtype=torch.float64) for size in sizes]
    assert float(model(*parameters).exp().sum()) == pytest.approx(1)


def test_a_fitted_model_needs_at_least_the_entropy() -> None:
    shares = count_images(draw_patterns(10_000))
    entropy = float(torch.special.entr(shares).sum())
    fitted = fit(transform, (4,), shares), fit(mix, (2, 8), shares)
    flow, mixture = (float(-(shares * logprobs).sum()) for logprobs in fitted)
    assert entropy < flow < entropy + 0.01, "the lower row is the upper one with independent changes"
    assert mixture > entropy + 0.1


def test_the_forward_algorithm_is_the_sum_over_all_paths() -> None:
    symbols = draw_symbols(7)
    assert float(forward(symbols).sum()) == pytest.approx(sum_paths(symbols))


def test_the_kalman_filter_is_one_gaussian() -> None:
    readings = [0.3, -1.0, 2.0, 0.1]
    assert sum(filter_readings(readings)) == pytest.approx(log_gaussian(readings))


def test_longer_n_grams_come_closer_to_the_hidden_markov_model() -> None:
    bits = [float(line.split()[-1]) for line in show_states() if line.startswith("  ")]
    assert bits == sorted(bits, reverse=True)
    assert bits[0] < math.log2(3)
