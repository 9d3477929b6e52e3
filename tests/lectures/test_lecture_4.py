"""Numbers of lecture 4 whose values are known."""

import math

import pytest
import torch

from regard.lectures import lecture_4
from regard.lectures.blocks import Table
from regard.lectures.load import Facts


def read_rows(facts: Facts) -> list[list[float]]:
    """Return the numbers of the table's rows."""
    table = facts.blocks["table"]
    assert isinstance(table, Table)
    return [[cell for cell in row if not isinstance(cell, str)] for row in table.rows]


def test_the_wrong_answers_of_the_quiz_have_the_slides_numbers() -> None:
    printed = [0.5, 0.5, 0.54, 0.46, 0.88, 0.12, 0.12, 0.88]
    computed = [weight for row in read_rows(lecture_4.thinking_quiz()) for weight in row]
    assert [round(weight, 2) for weight in computed] == printed
    scale = math.sqrt(lecture_4.thinking_quiz().numbers["d_k"])  # type: ignore[arg-type]
    assert (torch.tensor([112.0, 96.0]) / scale).softmax(dim=0)[0].item() == pytest.approx(112 / 208)


def test_scores_cost_as_much_as_projections_at_twice_the_width() -> None:
    _, _, twice, six, _ = read_rows(lecture_4.quadratic_attention())
    assert twice[1] == twice[2]
    assert six[1] == pytest.approx(six[2] + six[3])


def test_a_row_that_sees_nothing_gets_the_mean_nan_or_zero() -> None:
    low, infinite, ours = read_rows(lecture_4.blocked_row())
    assert low == pytest.approx([1 / 12, 5.5, 1 / 12])
    assert all(map(math.isnan, infinite))
    assert ours == [0.0, 0.0, 0.0]


def test_only_the_last_encoder_layer_gives_equal_logits() -> None:
    right, *wrong = read_rows(lecture_4.which_connection())
    assert right == [0.0]
    assert all(difference > 0.1 for (difference,) in wrong)


def test_shared_layers_stay_equal_and_copies_do_not() -> None:
    copies, shared = read_rows(lecture_4.clones())
    assert copies[0] == 4 * shared[0]
    assert copies[1] == shared[1] == shared[2] == 0
    assert copies[2] > 0


def test_one_step_lowers_the_loss_of_every_position() -> None:
    for before, after in read_rows(lecture_4.loss_and_step()):
        assert after < before


def test_concatenation_with_a_projection_is_a_sum() -> None:
    assert lecture_4.add_or_concatenate().numbers["difference"] < 1e-4  # type: ignore[operator]
