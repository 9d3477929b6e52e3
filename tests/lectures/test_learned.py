"""Attention without parameters, a learned M of positions, a figure of sinusoids."""

import math
from itertools import permutations
from xml.etree import ElementTree

import pytest
import torch

from regard.lectures import learned
from regard.nn.positions import Sinusoidal


def test_without_parameters_all_features_count_alike() -> None:
    """Large features that say nothing decide the weights; learned projections leave them out."""
    plain, trained = learned.measure_features(4.0)
    assert plain < 0.15
    assert trained > 0.7
    silent, _ = learned.measure_features(0.0)
    assert silent > 0.8


def test_a_learned_unitary_matrix_rotates_by_the_frequencies() -> None:
    table = Sinusoidal(4, 16.0, interleaved=True).encode(torch.arange(32)[None])[0].double()
    matrix = learned.learn_matrix(table, unitary=True)
    eigenvalues = torch.linalg.eigvals(matrix)
    assert eigenvalues.abs().tolist() == pytest.approx([1.0] * 4, abs=1e-9)
    assert sorted(eigenvalues.angle().tolist()) == pytest.approx([-1, -0.25, 0.25, 1], abs=1e-3)
    assert torch.linalg.matrix_power(matrix, 10) @ table[3] == pytest.approx(table[13].numpy(), abs=0.01)


def test_the_figure_has_every_position_and_dimension() -> None:
    figure = "\n".join(learned.show_figure())
    cells = ElementTree.fromstring(figure).findall("{*}rect")[1:]  # noqa: S314 - our own file
    assert len(cells) == 51 * 130
    assert [cell.get("fill") for cell in cells[:4]] == ["#ffffff", "#ff0000"] * 2, "sin 0 and cos 0"
    assert cells[50 * 130].get("fill") == learned.choose_color(math.sin(50))


def test_the_tables_are_printed() -> None:
    lines = list(learned.show_matrix())
    unitary, other, sinusoid = (
        next(line for line in lines if line.startswith(name)) for name in ("unit", "any", "sin")
    )
    assert "1.000 to 1.000" in unitary
    assert float(other.split()[-1]) < 0.5 < float(unitary.split()[-1]) == float(sinusoid.split()[-1]) == 2
    assert float(other.split()[-2]) < 0.01 < float(unitary.split()[-2]), "a unitary M keeps positions apart"


def test_the_mean_of_hard_attention_is_soft_attention() -> None:
    weights, values = torch.tensor([0.2, 0.5, 0.3]), torch.eye(3)
    samples = learned.sample_positions(weights, values, 20_000)
    assert bool((samples.sum(dim=1) == 1).all()), "one position each"
    assert samples.mean(dim=0).tolist() == pytest.approx(weights.tolist(), abs=0.02)
    distances = [float(line.split()[-1]) for line in learned.show_hard() if line.startswith("mean")]
    assert distances == sorted(distances, reverse=True)


def test_every_order_of_pixels_gives_the_same_bits() -> None:
    images = learned.draw_patterns(2000)
    counts = images.unique(dim=0, return_counts=True)[1] / 2000
    whole = -(counts * counts.log2()).sum().item()
    all_bits = [learned.conditional_bits(images, order) for order in permutations(range(4))]
    assert [sum(bits) for bits in all_bits] == pytest.approx([whole] * 24, abs=1e-5)
    assert max(bits[3] for bits in all_bits) - min(bits[3] for bits in all_bits) > 0.01, "the conditionals differ"
