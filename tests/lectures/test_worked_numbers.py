"""The worked numbers of the lectures."""

import re

import pytest
import torch

from regard.lectures.subjects import show
from regard.lectures.worked_numbers import measure_gradient


def read(subject: str) -> str:
    return "\n".join(show(subject)) + "\n"


def read_numbers(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", line)]


@pytest.mark.parametrize(
    "subject",
    ["lookup", "attention", "variance", "mask", "order", "positions", "padding", "embedding", "loss", "search"],
)
def test_every_subject_prints(subject: str) -> None:
    output = read(subject)
    assert len(output.splitlines()) >= 7
    assert "nan" not in output


def test_lookup_is_hard_or_soft() -> None:
    """Queries find their order; hard look-up returns its value, soft look-up mixes in the others."""
    hard, soft, uniform = read("lookup").split("\n\n")[1:4]
    for kind in (hard, soft):
        assert "on order_104, items e1" in kind
        assert "on order_106, items g1" in kind
    assert read_numbers(hard)[:4] == [1.0, 4.0, 1.0, 6.0]
    # One key with score 3 and ten with score 0: e^3 / (e^3 + 10) = 0.67.
    assert read_numbers(soft)[0] == 0.67
    assert read_numbers(uniform)[:4] == [0.09, 5.0, 0.09, 5.0]


def test_a_duplicate_key_returns_the_mean_of_its_values() -> None:
    """The slide's database has eleven rows, and order_109 twice."""
    assert read("lookup").startswith("Eleven orders")
    assert "order_109, items j1 and k1; weighted sum of the values 9.50" in read("lookup")


def test_thinking_machines_are_printed() -> None:
    output = read("attention")
    assert re.search(r"q\.k +112 +96\n.*sqrt\(64\) = 8 +14 +12\nsoftmax +0\.88 +0\.12\n", output)
    rows = [read_numbers(line) for line in output.splitlines()[-3:]]
    for row in rows:
        assert sum(row[2:5]) == pytest.approx(1.0, abs=0.002)  # the weights


def test_the_scale_keeps_the_variance_and_the_gradient() -> None:
    rows = [read_numbers(line) for line in read("variance").splitlines()[4:10]]
    for (variance, scaled, *_), size in zip(rows, (1, 4, 16, 64, 256, 1024), strict=True):
        assert variance == pytest.approx(size, rel=0.1)
        assert scaled == pytest.approx(1.0, rel=0.1)
    gradients, scaled_gradients = [row[4] for row in rows], [row[5] for row in rows]
    assert gradients[-1] < 0.2 * gradients[1]
    assert min(scaled_gradients) > 0.9 * max(scaled_gradients)


def test_measure_gradient_equals_autograd() -> None:
    scores = torch.tensor([[0.3, -1.0, 2.0]], dtype=torch.float64)
    derivative = torch.autograd.functional.jacobian(lambda row: row.softmax(dim=-1), scores[0])
    assert measure_gradient(scores.softmax(dim=-1))[0] == pytest.approx(float(derivative.norm()))


def test_one_hot_times_matrix_is_the_embedding() -> None:
    """The one-hot vector selects row 3 of the matrix, and the model's input is this row times sqrt(4)."""
    lines = read("embedding").splitlines()
    row, product, vector = read_numbers(lines[4]), read_numbers(lines[9]), read_numbers(lines[12])
    assert len(row) == 4
    assert product == row
    assert vector == pytest.approx([2 * number for number in row], abs=2e-4)


def test_cross_entropy_is_divergence_plus_entropy() -> None:
    """The loss of training, computed by Regard, is the sum that the lecture minimizes."""
    output = read("loss")
    losses = [float(number) for number in re.findall(r"cross-entropy ([\d.]+)", output)]
    sums = [float(number) for number in re.findall(r"= ([\d.]+)$", output, re.MULTILINE)]
    assert losses == sums
    assert losses[0] == 0.3524  # log(e^2 + e^0.5 + e^0.1 + e^-1) - 2
    assert losses[1] > losses[0]


def test_padding_has_no_weight() -> None:
    rows = [read_numbers(line) for line in read("padding").splitlines()[-3:]]
    for row, length in zip(rows, (5, 2, 3), strict=True):
        assert all(weight > 0 for weight in row[:length])
        assert all(weight == 0 for weight in row[length:])


def test_a_mask_that_multiplies_makes_most_rows_nan() -> None:
    """Of 66 hidden scores 32 are negative; only rows 8 and 11 have no +inf."""
    *_, product, conclusion = read("mask").split("\n\n")
    with_infinity = [line.split()[0] for line in product.splitlines()[1:] if " inf" in line]
    assert len(with_infinity) == 10
    assert "32 of 66 hidden scores" in conclusion
    assert "10 of 12 rows" in conclusion


def test_a_product_with_minus_infinity_gives_nan() -> None:
    text = read("mask-values")
    nan_rows = [int(count) for count in re.findall(r"(\d+) of 12 rows are nan", text)]
    assert nan_rows == [0, 0, 10, 0]
    assert "32 of 66 hidden scores are negative" in text
    assert re.findall(r"forbidden keys get up to ([\d.]+)", text)[::3] == ["0.0000", "0.0000"]


def test_minus_1e9_lets_a_row_that_sees_nobody_see_all() -> None:
    rows = [re.findall(r"nan|\d\.\d\d", line) for line in read("mask-values").splitlines()[-4:-1]]
    assert rows == [["nan"] * 5, ["0.20"] * 5, ["0.00"] * 5]
