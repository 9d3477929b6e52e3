"""Requirements of the lectures on positions: formula, bounds, uniqueness, relative distance."""

import math
import re

import pytest
import torch
from torch import Tensor

from regard.lectures.positions import compare_words, iterate, judge_places, multiply, recur, turn
from regard.lectures.subjects import show
from regard.nn.positions import Alibi, Position, RelativeBias, Rotary, Sinusoidal, alibi_slopes

both_layouts = pytest.mark.parametrize("interleaved", [True, False], ids=["interleaved", "halves"])


def make_positions(*numbers: int) -> Tensor:
    """Position numbers of one row, (1, T)."""
    return torch.tensor(numbers)[None]


def encode_positions(count: int, width: int, interleaved: bool = True) -> Tensor:
    """The vectors of the first positions, (count, width), in double precision from here on."""
    return Sinusoidal(width, 10000.0, interleaved).encode(torch.arange(count)[None])[0].double()


@both_layouts
@pytest.mark.parametrize("width", [4, 10, 64])
def test_sinusoid_element_by_element(width: int, interleaved: bool) -> None:
    # sin(p / 10000^(2i/d)) and cos(p / 10000^(2i/d)). An angle in float32 is right to 7 digits, so the error
    # grows with the position: 1e-5 for the first 100, and 5e-4 at the end of the lectures' table of 5000.
    encoded = encode_positions(5000, width, interleaved)
    for position, tolerance in [*((p, 1e-5) for p in range(100)), (1234, 5e-4), (4999, 5e-4)]:
        for i in range(width // 2):
            angle = position / 10000 ** (2 * i / width)
            sine, cosine = (2 * i, 2 * i + 1) if interleaved else (i, i + width // 2)
            assert encoded[position, sine].item() == pytest.approx(math.sin(angle), abs=tolerance)
            assert encoded[position, cosine].item() == pytest.approx(math.cos(angle), abs=tolerance)


def test_halves_is_a_permutation_of_interleaved() -> None:
    # Hence a model can learn the same with either: all that changes is the order of the dimensions.
    order = [*range(0, 64, 2), *range(1, 64, 2)]
    assert torch.equal(
        encode_positions(50, 64, interleaved=False), encode_positions(50, 64, interleaved=True)[:, order]
    )


@both_layouts
def test_bounded(interleaved: bool) -> None:
    # Unlike the index itself, which grows with the sentence.
    assert encode_positions(5000, 64, interleaved).abs().max() <= 1


def test_any_length() -> None:
    # "Generalize to longer sentences": there is no maximum length, and the frequencies stay the same.
    far = Sinusoidal(64, 10000.0, interleaved=True).encode(make_positions(1_000_000))
    assert torch.isfinite(far).all()
    assert Sinusoidal(64, 10000.0, interleaved=True).max_positions is None


def test_the_same_in_every_sentence() -> None:
    # Unlike an index divided by the length: a position has one encoding, however long the sentence is.
    assert torch.equal(encode_positions(10, 64), encode_positions(1000, 64)[:10])


def test_unique() -> None:
    # All pairs among 0 to 4999, by |a - b|^2 = |a|^2 + |b|^2 - 2 a.b, some hundred rows at a time.
    encoded = encode_positions(5000, 64)
    squares = (encoded**2).sum(dim=1)
    for start in range(0, 5000, 500):
        part = slice(start, start + 500)
        distances = squares[part, None] + squares[None] - 2 * encoded[part] @ encoded.T
        distances[torch.arange(500), torch.arange(start, start + 500)] = torch.inf  # itself
        assert distances.min() > 1.0


@both_layouts
def test_product_depends_only_on_the_distance(interleaved: bool) -> None:
    # sin a sin b + cos a cos b = cos(a - b): "relative positions" for free.
    encoded = encode_positions(200, 64, interleaved)
    products = encoded @ encoded.T
    for distance in range(200):
        diagonal = products.diagonal(distance)
        expected = sum(math.cos(distance / 10000 ** (2 * i / 64)) for i in range(32))
        assert (diagonal - expected).abs().max() < 1e-4
    near, far = products.diagonal(1).mean(), products.diagonal(20).mean()
    assert near > far + 1  # near and far differ


@both_layouts
@pytest.mark.parametrize("width", [4, 64, 512])
def test_product_with_itself_is_half_the_width(width: int, interleaved: bool) -> None:
    encoded = encode_positions(300, width, interleaved)
    torch.testing.assert_close(
        (encoded @ encoded.T).diagonal(), torch.full((300,), width / 2).double(), rtol=0, atol=1e-4
    )


def test_example_of_deck_004() -> None:
    # n = 5 and d = 4, by the formula of the slide: 10000^(0/4) = 1 and 10000^(2/4) = 100.
    # The slide's printed columns 3 and 4 are slips (0.0017 where sin(1/100) = 0.0100, and so on), and so is its
    # product: the diagonal is d/2 = 2 everywhere, not only in the first entry.
    expected = [[math.sin(p), math.cos(p), math.sin(p / 100), math.cos(p / 100)] for p in range(5)]
    encoded = encode_positions(5, 4)
    torch.testing.assert_close(encoded, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6)
    printed = [[0.0, 1.0], [0.8415, 0.5403], [0.9093, -0.4161], [0.1411, -0.9900], [-0.7568, -0.6536]]
    torch.testing.assert_close(encoded[:, :2], torch.tensor(printed, dtype=torch.float64), rtol=0, atol=1e-4)
    assert encoded[1, 2].item() == pytest.approx(0.0100, abs=1e-4)
    torch.testing.assert_close((encoded @ encoded.T).diagonal(), torch.full((5,), 2.0).double(), rtol=0, atol=1e-6)


def test_frequencies_fall_along_the_dimensions() -> None:
    # At position 1 a sine is the sine of its frequency, which is at most 1: all fall, from 1 to near 1/10000.
    sines = encode_positions(2, 64)[1, 0::2]
    assert (sines.diff() < 0).all()
    assert sines[0].item() == pytest.approx(math.sin(1.0), abs=1e-6)
    assert sines[-1].item() == pytest.approx(10000 ** (-62 / 64), rel=1e-4)


def test_like_the_bits_of_a_binary_number() -> None:
    # Deck 000: the lowest bit changes with every number, higher ones ever more seldom. So do the signs of cosines.
    signs = encode_positions(2000, 64)[:, 1::2] > 0
    changes = (signs[1:] != signs[:-1]).sum(dim=0)
    assert (changes.diff() <= 0).all()
    assert changes[0].item() == pytest.approx(1999 / math.pi, abs=1)  # every half wave of the fastest
    assert changes[-1] == 0  # its wave is longer than the sentence


def rotate(x: Tensor, position: int, interleaved: bool) -> Tensor:
    """One head (K) at a position."""
    rotary = Rotary(x.numel(), 10000.0, interleaved)
    return rotary.on_heads(x[None, None, None], rotary.angles(make_positions(position)))[0, 0, 0]


@both_layouts
def test_rotary_keeps_norms_and_depends_only_on_the_distance(interleaved: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 16, generator=generator)
    for position in (0, 1, 17, 400):
        turned = rotate(query, position, interleaved)
        assert turned.norm().item() == pytest.approx(query.norm().item(), rel=1e-5)
    assert torch.equal(rotate(query, 0, interleaved), query)

    def product(p: int, q: int) -> float:
        return float(rotate(query, p, interleaved) @ rotate(key, q, interleaved))

    for distance in (0, 1, 5, 30):
        for start in (1, 50, 333):
            assert product(start + distance, start) == pytest.approx(product(distance, 0), abs=1e-3)
    assert abs(product(5, 0) - product(0, 0)) > 0.1  # the distance matters
    assert abs(product(5, 0) - product(0, 5)) > 0.1  # and its direction


@both_layouts
def test_rotary_rotates_pairs_by_the_frequencies_of_the_sinusoid(interleaved: bool) -> None:
    # Pair i turns by p / 10000^(2i/d): as complex numbers, a multiplication by exp(i angle).
    x = torch.randn(8, generator=torch.Generator().manual_seed(1))
    turned = rotate(x, 3, interleaved)
    for i in range(4):
        first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + 4)
        angle = 3 / 10000 ** (2 * i / 8)
        expected = complex(float(x[first]), float(x[second])) * complex(math.cos(angle), math.sin(angle))
        assert turned[first].item() == pytest.approx(expected.real, abs=1e-5)
        assert turned[second].item() == pytest.approx(expected.imag, abs=1e-5)


def make_relative_bias(is_bidirectional: bool) -> RelativeBias:
    position = RelativeBias(heads=3, buckets=32, distance=128, is_bidirectional=is_bidirectional)
    torch.nn.init.normal_(position.tables, generator=torch.Generator().manual_seed(2))  # all buckets differ
    return position.requires_grad_(False)


biases = pytest.mark.parametrize(
    "position",
    [Alibi(4), Alibi(6), make_relative_bias(is_bidirectional=True), make_relative_bias(is_bidirectional=False)],
    ids=["alibi", "alibi, 6 heads", "relative, both sides", "relative, past only"],
)


@biases
def test_biases_depend_only_on_the_distance(position: Position) -> None:
    here, elsewhere = torch.arange(200)[None], torch.arange(1000, 1200)[None]
    table, moved = position.on_scores(here, here), position.on_scores(elsewhere, elsewhere)
    assert table is not None
    assert moved is not None
    assert torch.equal(table, moved)
    assert torch.equal(table[..., 1:, 1:], table[..., :-1, :-1])  # constant along every diagonal
    # A constant bias would pass as well: near and far must differ in every head.
    assert (table[0, :, 199, 199] != table[0, :, 199, 190]).all()
    assert (table[0, :, 199, 198] != table[0, :, 199, 150]).all()


def test_alibi_penalises_distance() -> None:
    table = Alibi(4).on_scores(make_positions(10), torch.arange(21)[None])[0, :, 0]  # (H, S) around position 10
    for head, slope in enumerate([1 / 4, 1 / 16, 1 / 64, 1 / 256]):
        assert table[head].tolist() == [-slope * abs(10 - key) for key in range(21)]


def test_relative_bias_distinguishes_directions_only_if_both_are_visible() -> None:
    here = torch.arange(100)[None]
    both, past = (
        make_relative_bias(is_bidirectional=True).on_scores(here, here),
        make_relative_bias(is_bidirectional=False).on_scores(here, here),
    )
    assert (both[0, :, 50, 45] != both[0, :, 50, 55]).all()
    assert torch.equal(past[0, :, 50, 51:], past[0, :, 50, 50:51].expand(3, 49))  # the future is masked anyway


def test_alibi_slopes_of_any_number_of_heads() -> None:
    """Powers of two have a geometric series; others take every second slope of the next series, as the paper says."""
    assert alibi_slopes(8) == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(12) == [2.0**-i for i in range(1, 9)] + [2.0**-0.5, 2.0**-1.5, 2.0**-2.5, 2.0**-3.5]
    assert len(alibi_slopes(7)) == 7


@pytest.mark.parametrize(
    ("kind", "width", "met"),
    [
        ("index", 1, "unique steps longer"),
        ("normalized", 1, "largest"),
        ("bits", 4, "largest"),
        ("bits", 8, "unique longer largest"),
    ],
)
def test_rejected_codes_miss_a_requirement(kind: str, width: int, met: str) -> None:
    judged = judge_places(kind, width, 10000.0, 64)
    assert {name.removesuffix("_light") for name, light in judged.items() if name.endswith("_light") and light} == set(
        met.split()
    )


def test_sines_meet_all_requirements_unless_they_are_two() -> None:
    assert all(judge_places("sinusoidal", 32, 10000.0, 64)[f"{name}_light"] for name in ("unique", "steps", "longer"))
    assert not judge_places("sinusoidal", 2, 10000.0, 64)["unique_light"]


def test_a_permuted_sentence_has_the_same_vectors_without_positions() -> None:
    assert max(compare_words("dog bites man", "man bites dog", has_positions=False)) < 1e-12
    assert min(compare_words("dog bites man", "man bites dog", has_positions=True)) > 0.01


def test_exponential_recursion_converges_below_and_explodes_above_one_over_e() -> None:
    last = recur("exp", 1.0, 0.3, 100)[-1]
    assert last == pytest.approx(math.exp(0.3 * last))
    assert recur("exp", 1.0, 0.4, 100)[-1] == math.inf
    assert recur("add", 1.0, 0.5, 10)[-1] == 6.0
    assert recur("power", 2.0, 0.5, 2) == [2.0, 2**0.5, 2**0.5]  # exponents 0.5 and 1


def test_powers_of_a_matrix_have_the_powers_of_its_eigenvalues() -> None:
    path = iterate(0.9, math.pi / 2, 4)
    assert path[4].norm().item() == pytest.approx(0.9**4)
    assert path[4].tolist() == pytest.approx([0.9**4, 0], abs=1e-12)


def test_turned_arrows_depend_on_their_distance() -> None:
    query, key = (1.0, 0.2), (0.6, 0.7)
    near, far = ((turn(query, m) @ turn(key, m - 2)).item() for m in (5, 905))
    assert near == pytest.approx(far, abs=1e-5)
    assert turn(query, 0).tolist() == pytest.approx(query)


@pytest.mark.parametrize(("width", "distance"), [(4, 3), (64, 5)])
def test_a_larger_distance_can_have_a_larger_product(width: int, distance: int) -> None:
    products = multiply(width)
    assert products[distance + 1] > products[distance]
    assert products[0] == pytest.approx(width / 2)
    assert products.argmax() == 0


def test_concatenated_and_projected_positions_are_added() -> None:
    text = "\n".join(show("concatenation"))
    assert float(re.findall(r"at most (\S+)\.", text)[0]) < 1e-12
    assert "3,145,728 -> 12,582,912" in text


def test_shifted_positions_are_rotated() -> None:
    assert "eigenvalues of size 1.0000, 1.0000" in "\n".join(show("positions"))


def test_encodings_that_fail() -> None:
    """The recursions overflow for c = 1 and reach a fixed point for c = 0.01."""
    lines = "\n".join(show("positions")).split("Encodings that fail")[1].splitlines()[1:]
    values = [[float(number) for number in line.split()[-4:]] for line in lines[:6]]
    assert [row[-1] for row in values] == [1000, 1, float("inf"), 1.0102, float("inf"), 1]
    for row in (values[3], values[5]):
        assert row[0] == 2
        assert row[1] == row[2] == row[3], "positions 10, 100 and 1000 have the same code"
    assert "7 = 0111 and 8 = 1000" in lines[6]


def test_products_of_positions_rise_and_fall() -> None:
    """The dot product of positions 5 apart is smaller than that of positions 6 apart (d = 64)."""
    assert "1: 1.54, 2: 0.58, 3: 0.01, 4: 0.35" in "\n".join(show("positions"))
    assert "1: 30.92, 5: 23.50, 6: 23.56" in "\n".join(show("positions"))


def test_words_are_clouds_around_their_position() -> None:
    text = "\n".join(show("clouds"))
    assert float(re.findall(r"position: (\S+)% of", text)[0]) > 99
    drawing = text.split("\n\n")[1]
    assert drawing.count("*") == 5
    assert all(drawing.count(digit) > 20 for digit in "01234")
