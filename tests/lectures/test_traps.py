"""Values of masks, ties of merges, and concatenated positions."""

import re

from regard.lectures.subjects import show


def read(subject: str) -> str:
    return "\n".join(show(subject))


def test_a_product_with_minus_infinity_gives_nan() -> None:
    text = read("mask-values")
    nan_rows = [int(count) for count in re.findall(r"(\d+) of 12 rows are nan", text)]
    assert nan_rows == [0, 0, 10, 0]
    assert "32 of 66 hidden scores are negative" in text
    assert re.findall(r"forbidden keys get up to ([\d.]+)", text)[::3] == ["0.0000", "0.0000"]


def test_minus_1e9_lets_a_row_that_sees_nobody_see_all() -> None:
    rows = [re.findall(r"nan|\d\.\d\d", line) for line in read("mask-values").splitlines()[-4:-1]]
    assert rows == [["nan"] * 5, ["0.20"] * 5, ["0.00"] * 5]


def test_low_lower_newest_widest_has_ties() -> None:
    once, counted = read("ties").split("with counts")
    pairs = once.splitlines()[1].partition("times: ")[2].split(", ")
    assert "2 times" in once
    assert len(pairs) >= 6
    assert {"es", "st", "lo", "ow"} <= set(pairs)
    assert "low 5, lower 2, newest 6, widest 3" in counted
    assert "9 times: es, st, t\u2581" in counted


def test_concatenated_and_projected_positions_are_added() -> None:
    text = read("concatenation")
    assert float(re.findall(r"at most (\S+)\.", text)[0]) < 1e-12
    assert "3,145,728 -> 12,582,912" in text
