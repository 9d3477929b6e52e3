"""Stacks with parts taken out, before any training."""

import re

import pytest
import torch

from regard.lectures.stacks import (
    DEPTHS,
    WIDTH,
    build_encoder,
    draw,
    follow_printed_index,
    measure_depths,
    measure_shift,
    measure_softmax,
    measure_stack,
    show_depth,
    take_steps,
)
from regard.lectures.subjects import show
from regard.nn.masks import no_mask


def read_numbers(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?", line)]


def test_steps_add_up_to_the_block() -> None:
    for has_residual in (True, False):
        steps = take_steps(has_residual)
        x, sublayer, output = map(torch.tensor, (steps.x, steps.sublayer, steps.output))
        total = x + sublayer if has_residual else sublayer
        torch.testing.assert_close(output, torch.nn.functional.layer_norm(total, (WIDTH,)), rtol=0, atol=1e-5)


def test_measured_depth_equals_a_stack_of_that_depth() -> None:
    x, mixture = (draw(1, 8, WIDTH, seed=seed).requires_grad_() for seed in (0, 100))
    encoder = build_encoder(DEPTHS, 0)
    encoder.layers = torch.nn.ModuleList(list(encoder.layers)[:3])  # type: ignore[assignment]
    (encoder(x, no_mask()) * mixture).sum().backward()
    assert x.grad is not None
    depths = measure_depths(has_residual=True, has_norm=True)
    assert len(depths) == DEPTHS
    ratio = depths[2].gradient / float(x.grad.norm())  # the geometric mean of three seeds, of which this is one
    assert 1 / 3 < ratio < 3


def test_each_part_has_its_own_job() -> None:
    norm_alone, neither = measure_depths(False, True), measure_depths(False, False)
    residual_alone, both = measure_depths(True, False), measure_depths(True, True)
    assert neither[-1].gradient < neither[0].gradient / 50  # vanishes
    assert residual_alone[-1].gradient > residual_alone[0].gradient * 1000  # explodes
    assert norm_alone[1].similarity > 0.95 > both[1].similarity  # tokens become equal


def test_printed_index_leaves_the_second_self_attention_unused() -> None:
    difference, unused = follow_printed_index()
    assert difference > 0.1
    assert unused == 4 * (WIDTH * WIDTH + WIDTH)


def test_subject_prints_the_norm() -> None:
    assert "mean 0.0000, standard deviation 1.0000" in "\n".join(show_depth())


def test_gradient_vanishes_without_residual_connections_and_explodes_without_norms() -> None:
    both = measure_stack(8, has_residual=True, has_norm=True)[1]
    assert 0.1 < both < 10
    assert measure_stack(8, has_residual=False, has_norm=False)[1] < both / 1000
    assert measure_stack(8, has_residual=True, has_norm=False)[1] > both * 10


def test_scale_keeps_the_gradient_of_the_softmax_independent_of_the_key_size() -> None:
    small, large = (measure_softmax(key_dim, key_dim**-0.5)[1] for key_dim in (4, 512))
    assert abs(small - large) < 0.05
    assert measure_softmax(512, 1)[1] < large / 5


def test_layer_norm_gives_mean_0_and_deviation_1() -> None:
    table, streams = "\n".join(show("norm")).split("Deviation of the residual stream")
    rows = [read_numbers(line) for line in table.splitlines()[3:7]]
    for _, deviation, mean, after, _ in rows[:3]:
        assert mean == pytest.approx(0, abs=1e-3)
        assert after == pytest.approx(1, abs=1e-3), deviation
    assert rows[1][4] > 5 * rows[0][4] > 20 * rows[2][4], "a large input has a small gradient"
    assert rows[3][3] < 0.1, "a variance below eps"
    post, pre = (read_numbers(line) for line in streams.splitlines()[1:3])
    assert post == pytest.approx([1] * 4, abs=0.01)
    assert pre == sorted(pre)
    assert pre[-1] > 1.5


def test_residual_connections_keep_the_gradient() -> None:
    kept = measure_stack(16, has_residual=True, has_norm=True)[1]
    assert 0.5 < kept < 10
    assert measure_stack(16, has_residual=False, has_norm=False)[1] < 1e-6
    assert measure_stack(16, has_residual=False, has_norm=True)[1] < 0.5 * kept


def test_norms_keep_the_gradient_from_growing() -> None:
    assert measure_stack(16, has_residual=True, has_norm=False)[1] > 1e3


def test_norms_keep_deviations_and_not_means() -> None:
    """What the last layer reads: its deviation stays, its mean moves no less than without norms."""
    (moved, factor, loss), (moved_without, factor_without, _) = (
        measure_shift(has_residual=True, has_norm=has_norm) for has_norm in (True, False)
    )
    assert loss < 0.5
    assert 0.7 < factor < 1.5
    assert factor_without < 0.6
    assert moved > 0.8 * moved_without
