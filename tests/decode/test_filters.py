"""Every filter against its exact distribution, and all of them in their order."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.filters import Filters, draw
from tests.decode.chi_squared import check_tokens

PROBABILITIES = [0.05, 0.35, 0.11, 0.25, 0.2, 0.04]
DRAWS = 4000

CASES = [
    Filters(),
    Filters(temperature=0.5),
    Filters(temperature=3.0),
    Filters(top_k=3),
    Filters(top_p=0.7),
    Filters(min_p=0.6),
    Filters(min_p=0.14, temperature=1.5),
    Filters(typical_p=0.4),
    Filters(typical_p=0.9, temperature=0.7),
    Filters(top_k=5, top_p=0.9, min_p=0.4, typical_p=0.6, temperature=1.3),
    Filters(top_k=4, typical_p=0.3),
    Filters(top_p=0.99, typical_p=0.5),
    Filters(min_p=1.0),
    Filters(typical_p=1.0, top_p=1.0, min_p=1e-9),
]


def reference_distribution(filters: Filters) -> list[float]:
    """Return the filtered distribution, token by token, as the module docstring defines it."""

    def normalize(probabilities: dict[int, float]) -> dict[int, float]:
        return {token: p / sum(probabilities.values()) for token, p in probabilities.items()}

    def take_mass(probabilities: dict[int, float], order: list[int], mass: float) -> dict[int, float]:
        kept: dict[int, float] = {}
        for token in order:
            if sum(kept.values()) >= mass - 1e-6:
                break
            kept[token] = probabilities[token]
        return normalize(kept)

    probabilities = normalize({token: p ** (1 / filters.temperature) for token, p in enumerate(PROBABILITIES)})
    likely = sorted(probabilities, key=lambda token: -probabilities[token])
    probabilities = normalize({token: probabilities[token] for token in likely[: filters.top_k]})
    if filters.top_p is not None:
        probabilities = take_mass(probabilities, list(probabilities), filters.top_p)
    if filters.min_p is not None:
        least = filters.min_p * max(probabilities.values()) - 1e-9
        probabilities = normalize({token: p for token, p in probabilities.items() if p >= least})
    if filters.typical_p is not None:
        entropy = -sum(p * math.log(p) for p in probabilities.values())
        order = sorted(probabilities, key=lambda token: abs(-math.log(probabilities[token]) - entropy))
        probabilities = take_mass(probabilities, order, filters.typical_p)
    return [probabilities.get(token, 0.0) for token in range(len(PROBABILITIES))]


@pytest.mark.parametrize("filters", CASES, ids=str)
def test_sampling_frequencies_match_filtered_distribution(filters: Filters) -> None:
    logits = torch.tensor(PROBABILITIES).log().expand(DRAWS, -1) + 3.0  # any constant: logits need not be normalized
    expected = reference_distribution(filters)
    assert filters.probabilities(logits[:1])[0].tolist() == pytest.approx(expected, abs=1e-5)
    assert filters.probabilities(logits[:1]).sum().item() == pytest.approx(1.0)
    tokens = filters.draw(logits, torch.Generator().manual_seed(1))
    check_tokens(tokens[:, 0].tolist(), expected)


def test_typical_p_may_exclude_likeliest_token() -> None:
    left = Filters(typical_p=0.2).probabilities(torch.tensor([PROBABILITIES]).log())[0].tolist()
    assert left[1] == 0.0
    assert left[4] > 0  # log 0.2 is nearest to the entropy


def test_temperature_limits_are_greedy_and_uniform() -> None:
    logits = torch.tensor([PROBABILITIES]).log()
    for cold in (0.0, 1e-6):
        assert Filters(temperature=cold).probabilities(logits)[0].tolist() == pytest.approx([0, 1, 0, 0, 0, 0])
        assert Filters(temperature=cold).draw(logits.expand(50, -1), torch.Generator()).unique().tolist() == [1]
    hot = Filters(temperature=1e7)
    assert hot.probabilities(logits)[0].tolist() == pytest.approx([1 / 6] * 6, abs=1e-5)
    tokens = hot.draw(logits.expand(DRAWS, -1), torch.Generator().manual_seed(2))
    check_tokens(tokens[:, 0].tolist(), [1 / 6] * 6)


def test_repetition_penalty_is_power_of_probability() -> None:
    logprobs = torch.tensor([PROBABILITIES, PROBABILITIES]).log()
    history = torch.tensor([[1, 3, 1], [0, 0, 0]])
    penalized_probabilities = Filters(repetition_penalty=2.0).apply_penalties(logprobs, history).exp()
    expected = [list(PROBABILITIES), list(PROBABILITIES)]
    expected[0][1], expected[0][3], expected[1][0] = 0.35**2, 0.25**2, 0.05**2
    for row, expected_row in zip(penalized_probabilities.tolist(), expected, strict=True):
        assert row == pytest.approx(expected_row)
    rewarded_probabilities = Filters(repetition_penalty=0.5).apply_penalties(logprobs, history).exp()
    assert rewarded_probabilities[0, 1].item() == pytest.approx(0.35**0.5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_repeat_ngram_excludes_repeats(size: int) -> None:
    logprobs = torch.full((3, 4), 0.25).log()
    histories = [[0, 1, 2, 0, 1], [3, 3, 3, 3, 3], [2, 0, 1, 3, 0]]
    penalized = Filters(no_repeat_ngram=size).apply_penalties(logprobs, torch.tensor(histories))
    for history, row in zip(histories, penalized.tolist(), strict=True):
        ngrams = {tuple(history[start : start + size]) for start in range(len(history) - size + 1)}
        repeated_tokens = {token for token in range(4) if (*history[len(history) - size + 1 :], token) in ngrams}
        assert {token for token, logprob in enumerate(row) if logprob == -math.inf} == repeated_tokens
        assert repeated_tokens or (size, history) == (3, histories[2])
    assert (
        Filters(no_repeat_ngram=5).apply_penalties(logprobs, torch.tensor(histories))[1, 3] == -math.inf
    )  # 3 3 3 3 3 3 has it twice
    assert (
        Filters(no_repeat_ngram=9).apply_penalties(logprobs, torch.tensor(histories)).equal(logprobs)
    )  # the history is shorter


def test_penalties_act_before_other_filters() -> None:
    """If top-k came first, it would keep tokens 1 and 3."""
    filters = Filters(top_k=2, repetition_penalty=3.0)
    assert filters.needs_history
    assert not replace(filters, repetition_penalty=1.0).needs_history
    assert replace(filters, repetition_penalty=1.0, no_repeat_ngram=2).needs_history
    logprobs = filters.apply_penalties(torch.tensor([PROBABILITIES]).log(), torch.tensor([[1]]))
    probabilities = filters.probabilities(logprobs)[0].tolist()
    assert probabilities == pytest.approx([0, 0, 0, 25 / 45, 20 / 45, 0], abs=1e-5)


def test_draw_accepts_unnormalised_rows() -> None:
    columns = draw(torch.tensor([[3.0, 0.0, 1.0]]).expand(DRAWS, -1), torch.Generator().manual_seed(3))
    check_tokens(columns[:, 0].tolist(), [0.75, 0.0, 0.25])


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": 0},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"min_p": -0.1},
        {"typical_p": 2.0},
        {"typical_p": math.nan},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": math.nan},
        {"no_repeat_ngram": 0},
    ],
)
def test_invalid_filter_settings_raise(wrong: dict[str, float]) -> None:
    with pytest.raises(RegardError, match="fix"):
        Filters(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("sharpness", [0.1, 3.0])  # nearly flat: 256 tokens are too few; peaked: they suffice
def test_top_p_with_large_vocabulary(sharpness: float) -> None:
    logits = sharpness * torch.randn(5, 2000, generator=torch.Generator().manual_seed(1))
    probabilities = Filters(top_p=0.8).probabilities(logits)
    for row, row_probabilities in zip(logits.softmax(dim=1).tolist(), probabilities, strict=True):
        order = sorted(range(len(row)), key=lambda token: -row[token])
        cumulative = [sum(row[token] for token in order[:n]) for n in range(len(order))]
        kept = order[: next(n for n, mass in enumerate(cumulative) if mass >= 0.8)]
        assert (len(kept) > 256) == (sharpness < 1)
        assert row_probabilities.nonzero()[:, 0].tolist() == sorted(kept)
        assert row_probabilities[kept[0]] == pytest.approx(row[kept[0]] / sum(row[token] for token in kept), rel=1e-4)


def find_nucleus(probabilities: list[Fraction], mass: Fraction) -> set[int]:
    """Return the smallest set of tokens whose probabilities reach `mass`; of equal tokens those with the lowest ids."""
    for size in range(1, len(probabilities) + 1):
        sets = [
            tokens
            for tokens in combinations(range(len(probabilities)), size)
            if sum(probabilities[t] for t in tokens) >= mass
        ]
        if sets:
            return set(max(sets, key=lambda tokens: (sum(probabilities[t] for t in tokens), [-t for t in tokens])))
    raise AssertionError("probabilities sum to 1")


@pytest.mark.parametrize(
    "counts", [[1] * 3, [1] * 7, [1] * 10, [3, 1, 1, 3, 1, 1], [2, 2, 1, 2, 2, 1], [4, 1, 1, 1, 1, 2]]
)
def test_top_p_at_exact_ties(counts: list[int]) -> None:
    """Every threshold that a sum of probabilities reaches exactly, against the definition in exact fractions."""
    total = sum(counts)
    exact = [Fraction(count, total) for count in counts]
    logits = torch.tensor([counts]).double().div(total).log().float()
    for reached in range(1, total):
        probabilities = Filters(top_p=reached / total).probabilities(logits)[0]
        assert set(probabilities.nonzero()[:, 0].tolist()) == find_nucleus(exact, Fraction(reached, total)), reached


def test_top_p_of_a_large_flat_distribution_takes_the_lowest_ids() -> None:
    logits = torch.zeros(2, 5000)
    probabilities = Filters(top_p=0.5).probabilities(logits)
    assert torch.equal(probabilities.nonzero()[:, 1].view(2, -1), torch.arange(2500).repeat(2, 1))
    few = Filters(top_k=8, top_p=0.5).probabilities(logits)
    assert torch.equal(few.nonzero()[:, 1].view(2, -1), torch.arange(4).repeat(2, 1))
