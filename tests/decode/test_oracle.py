"""500 random small models: every beam finds what no search can beat, wherever theory says that it must."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard.decode.beam import beam
from regard.decode.constraints import constrained
from regard.decode.diverse import diverse_beam
from regard.decode.ensemble import ensemble
from regard.decode.exhaustive import exhaustive
from regard.decode.greedy import greedy
from regard.decode.lengths import Alpha, gnmt
from regard.decode.required import required_beam
from regard.decode.step import Hypothesis
from regard.decode.stochastic import stochastic_beam
from tests.decode.tables import BEGIN, END, Rows, Table

FIRST = torch.tensor([[BEGIN]])
ALPHAS: tuple[Alpha, ...] = (0.0, 0.3, 1.0, 1.7, gnmt(0.6), gnmt(1.5))


@dataclass
class Case:
    """A random model and how far to search it."""

    table: Table
    longest: int
    alpha: Alpha
    random: random.Random

    @property
    def everything(self) -> int:
        """A beam that holds all beginnings: whatever ends or is cut off is among its candidates' best."""
        return self.table.words**self.longest

    def state(self) -> Rows:
        return self.table.start([0])

    def texts(self) -> list[Hypothesis]:
        """All of them, best first."""
        settings = {"longest": [self.longest], "alpha": self.alpha, "best": 10**6}
        return exhaustive(self.table.step, self.state(), FIRST, end=END, **settings)[0]  # type: ignore[arg-type]


def cases(count: int, seed: int) -> Iterator[Case]:
    for number in range(count):
        chance = random.Random(seed * 10_000 + number)
        sharpness = chance.choice([0.5, 1.0, 3.0])
        table = Table(chance.choice([3, 4]), seed * 10_000 + number, sharpness)
        yield Case(table, chance.choice([1, 2, 3]), chance.choice(ALPHAS), chance)


def same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    """The same texts and scores in the same order; where scores are equal to rounding, the order may differ."""
    assert len(found) == len(expected)
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-5)
    for one, other in zip(found, expected, strict=True):
        if one.tokens != other.tokens:
            twins = [text.tokens for text in expected if abs(text.score - one.score) < 1e-5]
            assert one.tokens in twins


def test_a_beam_that_holds_all_beginnings_is_the_oracle() -> None:
    for case in cases(500, seed=1):
        best = case.random.choice([1, 3, 99])
        oracle = case.texts()
        settings = {"size": case.everything, "end": END, "longest": [case.longest], "alpha": case.alpha, "best": best}
        (found,) = beam(case.table.step, case.state(), FIRST, **settings)  # type: ignore[arg-type]
        same(found, oracle[:best])
        (grid,) = required_beam(case.table.step, case.state(), FIRST, required=[[]], **settings)  # type: ignore[arg-type]
        same(grid, oracle[:best])
        ((diverse,),) = diverse_beam(case.table.step, case.state(), FIRST, groups=1, **settings)  # type: ignore[arg-type]
        same(diverse, oracle[:best])


def test_no_beam_is_better_than_the_oracle_and_none_worse_than_its_own_first_text() -> None:
    for case in cases(500, seed=2):
        oracle = case.texts()[0]
        settings = {"end": END, "longest": [case.longest], "alpha": case.alpha}
        scores = []
        for size in (1, 2):
            (found,) = beam(case.table.step, case.state(), FIRST, size=size, **settings)  # type: ignore[arg-type]
            assert found[0].score <= oracle.score + 1e-6
            scores.append(found[0].score)
        (plain,) = greedy(case.table.step, case.state(), FIRST, **settings)  # type: ignore[arg-type]
        # A beam of one goes greedy's way; it may go on behind an END if that can score better.
        assert scores[0] >= plain.score - 1e-6
        (hasty,) = beam(case.table.step, case.state(), FIRST, size=1, enough=1, **settings)  # type: ignore[arg-type]
        assert hasty[0].tokens == plain.tokens
        if case.longest == 1:
            assert scores[0] == pytest.approx(oracle.score, abs=1e-6)  # one step: nothing can be missed


def test_where_the_past_does_not_matter_greedy_is_the_oracle() -> None:
    class Forgetful(Table):
        def logits(self, sentence: int, history: tuple[int, ...]) -> Tensor:  # type: ignore[override]
            return super().logits(sentence, (len(history),))

    for number in range(100):
        table = Forgetful(4, number)
        settings = {"end": END, "longest": [3], "never": torch.tensor([END]), "alpha": 0.0}
        ((oracle,),) = exhaustive(table.step, table.start([0]), FIRST, **settings)  # type: ignore[arg-type]
        (plain,) = greedy(table.step, table.start([0]), FIRST, **settings)  # type: ignore[arg-type]
        ((two,),) = beam(table.step, table.start([0]), FIRST, size=2, **settings)  # type: ignore[arg-type]
        assert plain.tokens == two.tokens == oracle.tokens


def test_forbidden_phrases_are_what_is_left_of_the_oracle() -> None:
    for case in cases(200, seed=3):
        words = range(2, case.table.words)
        phrases = [case.random.choices(words, k=case.random.choice([1, 2])) for _ in range(case.random.choice([1, 2]))]
        oracle = [one for one in case.texts() if BEGIN not in one.tokens and not any(has(one, p) for p in phrases)]
        step, state = constrained(case.table.step, case.state(), 1, sink=BEGIN, forbidden=phrases)
        settings = {"longest": [case.longest], "alpha": case.alpha, "best": 99, "never": torch.tensor([BEGIN])}
        (found,) = beam(step, state, FIRST, size=case.everything, end=END, **settings)  # type: ignore[arg-type]
        same(found, oracle)


def test_required_phrases_are_what_is_left_of_the_oracle() -> None:
    for case in cases(200, seed=4):
        size = case.random.choice([1, 2])
        phrases = [case.random.choices([0, *range(2, case.table.words)], k=min(size, case.longest))]
        if case.longest == 3:
            phrases.append([case.random.choice([0, *range(2, case.table.words)])])
        oracle = [one for one in case.texts() if all(has(one, phrase) for phrase in phrases)]
        settings = {"end": END, "longest": [case.longest], "alpha": case.alpha}
        grid = {"size": case.everything, "best": 99, "required": [phrases]}
        (found,) = required_beam(case.table.step, case.state(), FIRST, **settings, **grid)  # type: ignore[arg-type]
        same(found, oracle)
        (narrow,) = required_beam(case.table.step, case.state(), FIRST, **settings, size=1, required=[phrases])  # type: ignore[arg-type]
        assert all(has(narrow[0], phrase) for phrase in phrases)
        assert narrow[0].score <= oracle[0].score + 1e-6


def has(text: Hypothesis, phrase: list[int]) -> bool:
    places = range(len(text.tokens) - len(phrase) + 1)
    return any(list(text.tokens[place : place + len(phrase)]) == phrase for place in places)


def test_a_stochastic_beam_that_holds_everything_draws_every_text_once() -> None:
    for case in cases(100, seed=5):
        (drawn,) = stochastic_beam(
            case.table.step,
            case.state(),
            FIRST,
            size=case.everything,
            end=END,
            longest=[case.longest],
            generator=torch.Generator().manual_seed(1),
            alpha=case.alpha,
        )
        same(sorted((one.text for one in drawn), key=lambda text: -text.score), case.texts())


class Mean(Table):
    """Two tables as one."""

    def __init__(self, one: Table, other: Table) -> None:
        super().__init__(one.words, 0)
        self.both = (one, other)

    def logits(self, sentence: int, history: tuple[int, ...]) -> Tensor:  # type: ignore[override]
        return torch.stack([one.logits(sentence, history).softmax(dim=0) for one in self.both]).mean(dim=0).log()


def test_the_beam_of_an_ensemble_is_the_oracle_of_the_mean() -> None:
    for case in cases(100, seed=6):
        other = Table(case.table.words, 77, case.table.sharpness)
        step, state = ensemble([(case.table.step, case.state()), (other.step, other.start([0]))])
        settings = {"end": END, "longest": [case.longest], "alpha": case.alpha}
        (found,) = beam(step, state, FIRST, size=case.everything, **settings)  # type: ignore[arg-type]
        mean = Mean(case.table, other)
        (expected,) = exhaustive(mean.step, mean.start([0]), FIRST, **settings)  # type: ignore[arg-type]
        same(found, expected)
