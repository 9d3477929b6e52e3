"""Sampling against its exact distribution, on models without a network."""

import math

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.greedy import greedy
from regard.decode.sample import Filters, sample, sampled
from tests.decode.tables import BEGIN, END, Table

PROBABILITIES = torch.tensor([0.05, 0.4, 0.1, 0.25, 0.2])


def exact(temperature: float, top_k: int | None, top_p: float | None) -> list[float]:
    """Temperature, then top-k, then top-p, word by word."""
    kept = {word: p ** (1 / temperature) for word, p in enumerate(PROBABILITIES.tolist())}
    order = sorted(kept, key=lambda word: -kept[word])[:top_k]
    total = sum(kept[word] for word in order)
    chosen, reached = [], 0.0
    for word in order:
        if top_p is not None and reached >= top_p - 1e-6:
            break
        chosen.append(word)
        reached += kept[word] / total
    whole = sum(kept[word] for word in chosen)
    return [kept[word] / whole if word in chosen else 0.0 for word in range(5)]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(None, None), (3, None), (None, 0.7), (4, 0.8), (1, None), (None, 0.01)])
def test_words_are_drawn_as_often_as_they_must(temperature: float, top_k: int | None, top_p: float | None) -> None:
    draws = 4000
    logits = PROBABILITIES.log().expand(draws, 5) + 3.0  # any constant: logits need not be normalised
    words = Filters(temperature, top_k, top_p).draw(logits, torch.Generator().manual_seed(1))
    counts = torch.bincount(words[:, 0], minlength=5).tolist()
    expected = [p * draws for p in exact(temperature, top_k, top_p)]
    assert all(count == 0 for count, mean in zip(counts, expected, strict=True) if mean == 0)
    pairs = [(count, mean) for count, mean in zip(counts, expected, strict=True) if mean > 0]
    chi_squared = sum((count - mean) ** 2 / mean for count, mean in pairs)
    assert chi_squared < 18.5  # 4 degrees of freedom: 1 in 1,000


def test_cold_is_greedy_and_hot_is_uniform() -> None:
    table = Table(6, 3)
    first = torch.full((3, 1), BEGIN)
    coldest, cold = (
        sample(
            table.step,
            table.start([0, 1, 2]),
            first,
            end=END,
            longest=[4, 5, 6],
            generator=torch.Generator().manual_seed(1),
            filters=Filters(temperature=temperature),
        )
        for temperature in (0.0, 1e-6)
    )
    assert coldest == cold == greedy(table.step, table.start([0, 1, 2]), first, end=END, longest=[4, 5, 6])
    probabilities, words = Filters(temperature=1e6).candidates(PROBABILITIES.log()[None])
    assert words is None
    assert probabilities[0].tolist() == pytest.approx([0.2] * 5, abs=1e-5)


def test_the_same_seed_draws_the_same_texts_and_another_others() -> None:
    def drawn(seed: int) -> list[tuple[int, ...]]:
        table = Table(8, 1, sharpness=0.5)
        found = sample(
            table.step,
            table.start(range(5)),
            torch.full((5, 1), BEGIN),
            end=END,
            longest=[3, 9, 4, 6, 1],
            generator=torch.Generator().manual_seed(seed),
            never=torch.tensor([BEGIN]),
        )
        for sentence, one in enumerate(found):
            assert one.logs == pytest.approx(table.logs(sentence, one.tokens), abs=1e-5)
            assert BEGIN not in one.tokens
            assert one.ended or len(one.tokens) == [3, 9, 4, 6, 1][sentence]
        return [one.tokens for one in found]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_texts_of_a_step_arrive_before_the_next_is_taken() -> None:
    table = Table(4, 2)
    steps = sampled(
        table.step,
        table.start([0]),
        torch.full((1, 1), BEGIN),
        end=END,
        longest=[9],
        generator=torch.Generator().manual_seed(1),
        never=torch.tensor([END]),
    )
    for count in range(1, 4):
        assert next(steps)[0] is not None
        assert len(table.steps) == count


def test_numbers_that_mean_nothing_are_refused() -> None:
    for wrong in ({"temperature": -1.0}, {"temperature": math.nan}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}):
        with pytest.raises(RegardError, match="fix"):
            Filters(**wrong)


def test_one_word_is_left_whatever_top_p() -> None:
    logits: Tensor = torch.tensor([[0.0, 50.0, 0.0]])
    words = Filters(top_p=1e-9).draw(logits.expand(100, 3), torch.Generator().manual_seed(1))
    assert words.unique().tolist() == [1]
