"""Every filter against its exact distribution, and all of them in their order."""

import math
from dataclasses import replace

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.filters import Filters, draw
from tests.decode.chance import check_words

PROBABILITIES = [0.05, 0.35, 0.11, 0.25, 0.2, 0.04]
DRAWS = 4000

CHOICES = [
    Filters(),
    Filters(temperature=0.5),
    Filters(temperature=3.0),
    Filters(top_k=3),
    Filters(top_p=0.7),
    Filters(min_p=0.6),
    Filters(min_p=0.14, temperature=1.5),
    Filters(typical=0.4),
    Filters(typical=0.9, temperature=0.7),
    Filters(top_k=5, top_p=0.9, min_p=0.4, typical=0.6, temperature=1.3),
    Filters(top_k=4, typical=0.3),
    Filters(top_p=0.99, typical=0.5),
    Filters(min_p=1.0),
    Filters(typical=1.0, top_p=1.0, min_p=1e-9),
]


def exact(filters: Filters) -> list[float]:
    """The distribution that is left, word by word, as the table of the module's docstring tells it."""

    def whole(some: dict[int, float]) -> dict[int, float]:
        return {word: p / sum(some.values()) for word, p in some.items()}

    def reaching(some: dict[int, float], order: list[int], share: float) -> dict[int, float]:
        kept: dict[int, float] = {}
        for word in order:
            if sum(kept.values()) >= share - 1e-6:
                break
            kept[word] = some[word]
        return whole(kept)

    left = whole({word: p ** (1 / filters.temperature) for word, p in enumerate(PROBABILITIES)})
    likely = sorted(left, key=lambda word: -left[word])
    left = whole({word: left[word] for word in likely[: filters.top_k]})
    if filters.top_p is not None:
        left = reaching(left, list(left), filters.top_p)
    if filters.min_p is not None:
        least = filters.min_p * max(left.values()) - 1e-9
        left = whole({word: p for word, p in left.items() if p >= least})
    if filters.typical is not None:
        entropy = -sum(p * math.log(p) for p in left.values())
        order = sorted(left, key=lambda word: abs(-math.log(left[word]) - entropy))
        left = reaching(left, order, filters.typical)
    return [left.get(word, 0.0) for word in range(len(PROBABILITIES))]


@pytest.mark.parametrize("filters", CHOICES, ids=str)
def test_words_are_drawn_as_often_as_they_must(filters: Filters) -> None:
    logits = torch.tensor(PROBABILITIES).log().expand(DRAWS, -1) + 3.0  # any constant: logits need not be normalised
    expected = exact(filters)
    assert filters.probabilities(logits[:1])[0].tolist() == pytest.approx(expected, abs=1e-5)
    assert filters.probabilities(logits[:1]).sum().item() == pytest.approx(1.0)
    words = filters.draw(logits, torch.Generator().manual_seed(1))
    check_words(words[:, 0].tolist(), expected)


def test_typical_may_leave_out_the_likeliest_word() -> None:
    left = Filters(typical=0.2).probabilities(torch.tensor([PROBABILITIES]).log())[0].tolist()
    assert left[1] == 0.0
    assert left[4] > 0  # log 0.2 is nearest to the entropy


def test_cold_is_greedy_and_hot_is_uniform() -> None:
    logits = torch.tensor([PROBABILITIES]).log()
    for cold in (0.0, 1e-6):
        assert Filters(temperature=cold).probabilities(logits)[0].tolist() == pytest.approx([0, 1, 0, 0, 0, 0])
        assert Filters(temperature=cold).draw(logits.expand(50, -1), torch.Generator()).unique().tolist() == [1]
    hot = Filters(temperature=1e7)
    assert hot.probabilities(logits)[0].tolist() == pytest.approx([1 / 6] * 6, abs=1e-5)
    words = hot.draw(logits.expand(DRAWS, -1), torch.Generator().manual_seed(2))
    check_words(words[:, 0].tolist(), [1 / 6] * 6)


def test_repetition_is_a_power_of_what_was_written() -> None:
    logs = torch.tensor([PROBABILITIES, PROBABILITIES]).log()
    history = torch.tensor([[1, 3, 1], [0, 0, 0]])
    left = Filters(repetition=2.0).penalised(logs, history).exp()
    expected = [list(PROBABILITIES), list(PROBABILITIES)]
    expected[0][1], expected[0][3], expected[1][0] = 0.35**2, 0.25**2, 0.05**2
    for row, wanted in zip(left.tolist(), expected, strict=True):
        assert row == pytest.approx(wanted)
    kinder = Filters(repetition=0.5).penalised(logs, history).exp()
    assert kinder[0, 1].item() == pytest.approx(0.35**0.5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_sequence_is_written_twice(size: int) -> None:
    logs = torch.full((3, 4), 0.25).log()
    histories = [[0, 1, 2, 0, 1], [3, 3, 3, 3, 3], [2, 0, 1, 3, 0]]
    left = Filters(ngram=size).penalised(logs, torch.tensor(histories))
    for history, row in zip(histories, left.tolist(), strict=True):
        runs = {tuple(history[place : place + size]) for place in range(len(history) - size + 1)}
        again = {word for word in range(4) if (*history[len(history) - size + 1 :], word) in runs}
        assert {word for word, log in enumerate(row) if log == -math.inf} == again
        assert again or (size, history) == (3, histories[2])
    assert Filters(ngram=5).penalised(logs, torch.tensor(histories))[1, 3] == -math.inf  # 3 3 3 3 3 3 has it twice
    assert Filters(ngram=9).penalised(logs, torch.tensor(histories)).equal(logs)  # nothing is that long yet


def test_penalties_come_before_the_temperature_and_the_rest() -> None:
    """If top-k came first, the two words left would be 1 and 3."""
    filters = Filters(top_k=2, repetition=3.0)
    assert filters.look_back
    assert not replace(filters, repetition=1.0).look_back
    assert replace(filters, repetition=1.0, ngram=2).look_back
    logs = filters.penalised(torch.tensor([PROBABILITIES]).log(), torch.tensor([[1]]))
    left = filters.probabilities(logs)[0].tolist()
    assert left == pytest.approx([0, 0, 0, 25 / 45, 20 / 45, 0], abs=1e-5)


def test_drawing_from_what_does_not_sum_to_one() -> None:
    drawn = draw(torch.tensor([[3.0, 0.0, 1.0]]).expand(DRAWS, -1), torch.Generator().manual_seed(3))
    check_words(drawn[:, 0].tolist(), [0.75, 0.0, 0.25])


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
        {"typical": 2.0},
        {"typical": math.nan},
        {"repetition": 0.0},
        {"repetition": math.nan},
        {"ngram": 0},
    ],
)
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(RegardError, match="fix"):
        Filters(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("sharpness", [0.1, 3.0])  # nearly flat: 256 words are too few; peaked: they are enough
def test_a_share_of_many_words(sharpness: float) -> None:
    logits = sharpness * torch.randn(5, 2000, generator=torch.Generator().manual_seed(1))
    found = Filters(top_p=0.8).probabilities(logits)
    for row, left in zip(logits.softmax(dim=1).tolist(), found, strict=True):
        order = sorted(range(len(row)), key=lambda word: -row[word])
        reached = [sum(row[word] for word in order[:n]) for n in range(len(order))]
        kept = order[: next(n for n, share in enumerate(reached) if share >= 0.8)]
        assert (len(kept) > 256) == (sharpness < 1)
        assert left.nonzero()[:, 0].tolist() == sorted(kept)
        assert left[kept[0]] == pytest.approx(row[kept[0]] / sum(row[word] for word in kept), rel=1e-4)
