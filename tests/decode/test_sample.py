"""Sampling whole texts, on models without a network."""

from collections import Counter

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.exhaustive import exhaustive
from regard.decode.filters import Filters
from regard.decode.greedy import greedy
from regard.decode.sample import sample, sampled
from tests.decode.chance import check_counts
from tests.decode.tables import BEGIN, END, Fixed, Table


def test_texts_are_drawn_as_often_as_they_must() -> None:
    table, draws = Table(4, 8, sharpness=1.0), 3000
    found = sample(
        table.step,
        table.start([0] * draws),
        torch.full((draws, 1), BEGIN),
        end=END,
        longest=[3] * draws,
        generator=torch.Generator().manual_seed(1),
    )
    (texts,) = exhaustive(
        table.step, table.start([0]), torch.tensor([[BEGIN]]), end=END, longest=[3], alpha=0.0, best=99
    )
    expected = {text.tokens: draws * torch.tensor(text.score).exp().item() for text in texts}
    check_counts(Counter(one.tokens for one in found), expected)


def test_cold_is_greedy() -> None:
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


def test_penalties_see_what_was_read_and_written() -> None:
    table = Fixed(torch.tensor([[0.1, 0.1, 0.5, 0.3]] * 4))  # the same at every place
    settings = {"end": END, "longest": [2, 9], "generator": torch.Generator()}
    first = torch.tensor([[BEGIN, 2], [BEGIN, 3]])

    def texts(filters: Filters) -> list[tuple[int, ...]]:
        found = sample(table.step, table.start([0, 1]), first, filters=filters, never=None, **settings)  # type: ignore[arg-type]
        return [one.tokens for one in found]

    cold = Filters(temperature=0.0)
    assert texts(cold) == [(2, 2), (2,) * 9]
    assert texts(Filters(temperature=0.0, ngram=1)) == [(3, END), (2, END)]  # 0 was read, 2 (3) too
    assert texts(Filters(temperature=0.0, ngram=2))[1] == (2, 2, 3, 3, 0, 2, 0, 0, END)
    assert texts(Filters(temperature=0.0, repetition=4.0))[1] == (2, END)  # 0.3^4 and 0.5^4 are less than 0.1


def test_no_word_left_is_said() -> None:
    table = Table(3, 1)
    with pytest.raises(RegardError, match="No word is left"):
        sample(
            table.step,
            table.start([0]),
            torch.tensor([[BEGIN]]),
            end=END,
            longest=[4],
            generator=torch.Generator(),
            filters=Filters(ngram=1),
            never=torch.tensor([END]),
        )
