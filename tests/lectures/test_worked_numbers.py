"""The worked numbers of the lectures."""

import re

import pytest
import torch

from regard.lectures import subjects, worked_numbers
from regard.lectures.subjects import show
from regard.lectures.worked_numbers import measure_gradient


def read(subject: str) -> str:
    return "\n".join(show(subject)) + "\n"


def read_numbers(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", line)]


@pytest.mark.parametrize("subject", worked_numbers.SUBJECTS)
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


def test_shifted_positions_are_rotated() -> None:
    assert "eigenvalues of size 1.0000, 1.0000" in read("positions")


def test_encodings_that_fail() -> None:
    """The recursions overflow for c = 1 and reach a fixed point for c = 0.01."""
    lines = read("positions").split("Encodings that fail")[1].splitlines()[1:]
    values = [[float(number) for number in line.split()[-4:]] for line in lines[:6]]
    assert [row[-1] for row in values] == [1000, 1, float("inf"), 1.0102, float("inf"), 1]
    for row in (values[3], values[5]):
        assert row[0] == 2
        assert row[1] == row[2] == row[3], "positions 10, 100 and 1000 have the same code"
    assert "7 = 0111 and 8 = 1000" in lines[6]


def test_products_of_positions_rise_and_fall() -> None:
    """The dot product of positions 5 apart is smaller than that of positions 6 apart (d = 64)."""
    assert "1: 1.54, 2: 0.58, 3: 0.01, 4: 0.35" in read("positions")
    assert "1: 30.92, 5: 23.50, 6: 23.56" in read("positions")


def test_padding_has_no_weight() -> None:
    rows = [read_numbers(line) for line in read("padding").splitlines()[-3:]]
    for row, length in zip(rows, (5, 2, 3), strict=True):
        assert all(weight > 0 for weight in row[:length])
        assert all(weight == 0 for weight in row[length:])


def test_greedy_misses_what_beam_search_finds() -> None:
    """0.41 x 0.95 x 0.9 is more than 0.5 x 0.4 x 0.5; no search scores more tokens than its bound."""
    output = read("search")
    assert "he -0.7, I -0.9" in output
    assert re.search(r"^ +-1\.05 +finished +I ran <END>$", output, re.MULTILINE)
    assert "Backtracking from the best finished candidate: I ran <END>\n" in output
    rows = {line.split()[0]: line for line in output.splitlines() if "next tokens scored" in line}
    assert rows["greedy"].endswith("he hit <END>")
    assert rows["beam"].endswith("I ran <END>")
    assert rows["exhaustive"].endswith("I ran <END>")
    scored = {name: int(re.findall(r"= +(\d+)", line)[0]) for name, line in rows.items()}
    assert scored["greedy"] <= 6 * 4
    assert scored["greedy"] < scored["beam"] <= 2 * 6 * 4 < scored["exhaustive"]


def test_a_mask_that_multiplies_makes_most_rows_nan() -> None:
    """Of 66 hidden scores 32 are negative; only rows 8 and 11 have no +inf."""
    *_, product, conclusion = read("mask").split("\n\n")
    with_infinity = [line.split()[0] for line in product.splitlines()[1:] if " inf" in line]
    assert len(with_infinity) == 10
    assert "32 of 66 hidden scores" in conclusion
    assert "10 of 12 rows" in conclusion


def test_every_subject_has_its_own_name() -> None:
    modules = (module for module in vars(subjects).values() if hasattr(module, "SUBJECTS"))
    assert sum(len(module.SUBJECTS) for module in modules) == len(subjects.SUBJECTS)
