"""`examples/lectures/run.py` prints the numbers of the lectures."""

import re
import sys

import pytest
from examples.lectures import run


def read_output(subject: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "argv", ["run.py", subject])
    run.main()
    return capsys.readouterr().out


def read_numbers(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", line)]


@pytest.mark.parametrize("subject", run.SUBJECTS)
def test_every_subject_prints(
    subject: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = read_output(subject, capsys, monkeypatch)
    assert len(output.splitlines()) >= 7
    assert "nan" not in output


def test_lookup_is_hard_or_soft(capsys: pytest.CaptureFixture[str]) -> None:
    """Both queries find their order; hard look-up returns its value, soft look-up mixes in the others."""
    run.show_lookup()
    hard, soft, uniform = capsys.readouterr().out.split("\n\n")[1:4]
    for kind in (hard, soft):
        assert "on order_104, items e1" in kind
        assert "on order_106, items g1" in kind
    assert read_numbers(hard) == [1.0, 4.0, 1.0, 6.0]
    # One key with score 3 and nine with score 0: e^3 / (e^3 + 9) = 0.69.
    assert read_numbers(soft)[0] == 0.69
    assert read_numbers(uniform) == [0.1, 4.5, 0.1, 4.5]


def test_thinking_machines_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run.show_attention()
    output = capsys.readouterr().out
    assert re.search(r"q\.k +112 +96\n.*sqrt\(64\) = 8 +14 +12\nsoftmax +0\.88 +0\.12\n", output)
    rows = [read_numbers(line) for line in output.splitlines()[-3:]]
    for row in rows:
        assert sum(row[2:5]) == pytest.approx(1.0, abs=0.002)  # the weights


def test_the_scale_keeps_the_variance(capsys: pytest.CaptureFixture[str]) -> None:
    run.show_variance()
    for line in capsys.readouterr().out.splitlines()[3:9]:
        size, (variance, scaled, _, _) = int(line.split()[0]), read_numbers(line)
        assert variance == pytest.approx(size, rel=0.1)
        assert scaled == pytest.approx(1.0, rel=0.1)


def test_one_hot_times_matrix_is_the_embedding(capsys: pytest.CaptureFixture[str]) -> None:
    """The one-hot vector selects row 3 of the matrix, and the model's input is this row times sqrt(4)."""
    run.show_embedding()
    lines = capsys.readouterr().out.splitlines()
    row, product, vector = read_numbers(lines[4]), read_numbers(lines[9]), read_numbers(lines[12])
    assert len(row) == 4
    assert product == row
    assert vector == pytest.approx([2 * number for number in row], abs=2e-4)


def test_cross_entropy_is_divergence_plus_entropy(capsys: pytest.CaptureFixture[str]) -> None:
    """The loss of training, computed by Regard, is the sum that the lecture minimizes."""
    run.show_loss()
    output = capsys.readouterr().out
    losses = [float(number) for number in re.findall(r"cross-entropy ([\d.]+)", output)]
    sums = [float(number) for number in re.findall(r"= ([\d.]+)$", output, re.MULTILINE)]
    assert losses == sums
    assert losses[0] == 0.3524  # log(e^2 + e^0.5 + e^0.1 + e^-1) - 2
    assert losses[1] > losses[0]


def test_shifted_positions_are_rotated(capsys: pytest.CaptureFixture[str]) -> None:
    run.show_positions()
    assert "eigenvalues of size 1.0000, 1.0000" in capsys.readouterr().out


def test_encodings_that_fail(capsys: pytest.CaptureFixture[str]) -> None:
    """Index, exponential and power grow without bound; an index divided by the length stays below 1."""
    run.show_positions()
    lines = capsys.readouterr().out.split("Encodings that fail")[1].splitlines()[1:]
    last = [float(line.split()[-1]) for line in lines[:4]]
    assert last[0] == 1000
    assert last[1] == 1
    assert last[2] > 1e4
    assert last[3] > 1e29
    assert "7 = 0111 and 8 = 1000" in lines[4]


def test_padding_has_no_weight(capsys: pytest.CaptureFixture[str]) -> None:
    run.show_padding()
    rows = [read_numbers(line) for line in capsys.readouterr().out.splitlines()[-3:]]
    for row, length in zip(rows, (5, 2, 3), strict=True):
        assert all(weight > 0 for weight in row[:length])
        assert all(weight == 0 for weight in row[length:])


def test_greedy_misses_what_beam_search_finds(capsys: pytest.CaptureFixture[str]) -> None:
    """0.41 x 0.95 x 0.9 is more than 0.5 x 0.4 x 0.5; no search scores more tokens than its bound."""
    run.show_search()
    output = capsys.readouterr().out
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
