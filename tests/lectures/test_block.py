"""The block LN(x + Sublayer(x)) in Regard's layers, with parts taken out."""

import torch

from regard.lectures.block import (
    DEPTHS,
    WIDTH,
    build_encoder,
    draw,
    follow_printed_index,
    measure_depths,
    show_block,
    take_steps,
)
from regard.nn.masks import no_mask


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
    assert "mean 0.0000, standard deviation 1.0000" in "\n".join(show_block())
