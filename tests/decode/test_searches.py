"""Searches against every text there is, on models without a network."""

import math

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.greedy import greedy
from regard.decode.sample import sample
from regard.decode.step import Hypothesis
from tests.decode.tables import BEGIN, END, Fixed, History, Rows, Table, exhaustive

LONGEST = [4, 2, 3, 4]
SENTENCES = [0, 1, 2, 3]
ALPHAS = [0.0, 0.6, 1.0, 2.0]


def begin(rows: int) -> Tensor:
    return torch.full((rows, 1), BEGIN)


def check(found: Hypothesis, table: Table, sentence: int, alpha: float) -> None:
    """What a hypothesis says of itself is what the model says of it."""
    logs = table.logs(sentence, found.tokens)
    assert found.logs == pytest.approx(logs, abs=1e-5)
    assert found.score == pytest.approx(sum(logs) / len(logs) ** alpha, abs=1e-5)
    assert found.ended == (found.tokens[-1] == END)
    assert found.text == tuple(token for token in found.tokens if token != END)
    assert END not in found.tokens[:-1]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_beam_that_holds_everything_finds_the_best_texts_in_order(alpha: float) -> None:
    for seed in range(15):
        table = Table(4, seed)
        found = beam(
            table.step, table.start(SENTENCES), begin(4), size=81, end=END, longest=LONGEST, alpha=alpha, best=3
        )
        for sentence, hypotheses in zip(SENTENCES, found, strict=True):
            best = exhaustive(table, sentence, LONGEST[sentence], alpha)[:3]
            assert [one.tokens for one in hypotheses] == [text for _, text in best]
            for one in hypotheses:
                check(one, table, sentence, alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_stopping_by_the_bound_is_early_and_gives_nothing_away(size: int, alpha: float) -> None:
    for seed in range(20):
        table = Table(5, seed)
        found = beam(table.step, table.start([0]), begin(1), size=size, end=END, longest=[5], alpha=alpha, best=2)[0]
        everything, steps = by_hand(table, 0, size, 5, alpha, best=2)
        assert [one.tokens for one in found] == [text for _, text in everything[: len(found)]]
        assert len(found) == min(2, len(everything))
        assert len(table.steps) == steps


def by_hand(
    table: Table, sentence: int, size: int, longest: int, alpha: float, best: int
) -> tuple[list[tuple[float, History]], int]:
    """Beam search as the docstring tells it, without stopping; and after how many steps it could have stopped."""
    opened: list[tuple[float, History]] = [(0.0, ())]
    finished: list[tuple[float, History]] = []
    steps = longest
    for place in range(1, longest + 1):
        candidates = []
        for total, text in opened:
            logs = table.logits(sentence, (BEGIN, *text)).log_softmax(dim=-1).tolist()
            candidates += [(total + log, (*text, word)) for word, log in enumerate(logs)]
        candidates = sorted(candidates, reverse=True)[: 2 * size]
        over = [one for one in candidates[:size] if one[1][-1] == END or place == longest]
        finished += [(total / place**alpha, text) for total, text in over]
        opened = [one for one in candidates if one[1][-1] != END][:size]
        ranked = sorted(finished, reverse=True)
        if len(ranked) >= best and ranked[best - 1][0] >= opened[0][0] / longest**alpha:
            steps = min(steps, place)
    return sorted(finished, reverse=True), steps


def test_the_bound_stops_before_the_longest_length() -> None:
    sure = torch.tensor([[0.0, 0.01, 0.98, 0.01], [0.25] * 4, [0.005, 0.98, 0.01, 0.005], [0.25] * 4])
    for alpha, most in ((0.0, 3), (1.0, 25)):
        table = Fixed(sure)
        state = table.start([0])
        (found,) = beam(table.step, state, begin(1), size=2, end=END, longest=[50], alpha=alpha)
        assert found[0].tokens == (2, END)
        assert max(map(len, state.histories)) <= most


def test_enough_stops_at_the_first_finished_text() -> None:
    table = Fixed(torch.tensor([[0.0, 0.5, 0.4, 0.1], [0.25] * 4, [0.001, 0.997, 0.001, 0.001], [0.25] * 4]))
    exact = beam(table.step, table.start([0]), begin(1), size=2, end=END, longest=[9], alpha=1.0)[0][0]
    hasty = beam(table.step, table.start([0]), begin(1), size=2, end=END, longest=[9], alpha=1.0, enough=1)[0][0]
    assert hasty.tokens == (END,)  # log 0.5, sooner
    assert exact.tokens == (2, END)  # log 0.4 / 2, better
    assert exact.score > hasty.score


@pytest.mark.parametrize("size", [1, 3])
def test_a_beam_of_many_sentences_is_the_beam_of_each(size: int) -> None:
    for seed in range(10):
        table = Table(6, seed)
        together = beam(table.step, table.start(SENTENCES), begin(4), size=size, end=END, longest=LONGEST)
        for sentence in SENTENCES:
            alone = beam(table.step, table.start([sentence]), begin(1), size=size, end=END, longest=[LONGEST[sentence]])
            assert alone[0] == together[sentence]


def test_greedy_takes_the_likeliest_word_every_time() -> None:
    for seed in range(20):
        table = Table(5, seed)
        for sentence, found in zip(
            SENTENCES, greedy(table.step, table.start(SENTENCES), begin(4), end=END, longest=LONGEST), strict=True
        ):
            text: tuple[int, ...] = ()
            while len(text) < LONGEST[sentence] and END not in text:
                text += (int(table.logits(sentence, (BEGIN, *text)).argmax()),)
            assert found.tokens == text
            check(found, table, sentence, 1.0)


def test_rows_that_are_finished_leave() -> None:
    table = Table(4, 1)
    longest = [1, 2, 3, 4, 5, 6]
    state = table.start(range(6))
    greedy(table.step, state, begin(6), end=END, longest=longest)
    assert state.reordered == sorted(state.reordered, reverse=True)
    assert state.reordered
    assert state.reordered[-1] < 3
    rows = [shape[0] for shape in table.steps]
    assert rows[0] == 6
    assert rows == sorted(rows, reverse=True)
    table = Table(4, 1)
    beam(table.step, table.start(range(6)), begin(6), size=3, end=END, longest=longest)
    rows = [shape[0] for shape in table.steps]
    assert rows[0] == 6  # one beginning each
    assert rows[1] <= 5 * 3  # the first sentence had room for one token
    assert all(width == 1 for _, width in table.steps)
    state = table.start([0])
    beam(table.step, state, begin(1), size=1, end=END, longest=[4])
    assert state.reordered == []  # what stays in its place is not copied


def test_words_that_must_not_be_written_are_not_and_nothing_else_changes() -> None:
    never = frozenset({BEGIN, 3})
    for seed in range(10):
        table = Table(5, seed)
        banned = torch.tensor(sorted(never))
        found = beam(table.step, table.start([0]), begin(1), size=81, end=END, longest=[3], never=banned, best=2)[0]
        best = exhaustive(table, 0, 3, 1.0, never)[:2]
        assert [one.tokens for one in found] == [text for _, text in best]
        check(found[0], table, 0, 1.0)  # probabilities stay the model's own
        plain = greedy(table.step, table.start([0]), begin(1), end=END, longest=[3], never=banned)[0]
        assert not never & set(plain.tokens)


def test_no_step_is_taken_after_the_longest_length() -> None:
    table = Table(5, 3)
    (found,) = greedy(table.step, table.start([0]), begin(1), end=END, longest=[3], never=torch.tensor([END]))
    assert len(found.tokens) == len(table.steps) == 3
    assert not found.ended
    table = Table(5, 3)
    greedy(table.step, table.start([0, 1]), begin(2), end=END, longest=[1, 3], never=torch.tensor([END]))
    assert table.steps == [(2, 1), (1, 1), (1, 1)]


def test_a_prefix_is_read_and_not_written() -> None:
    table = Table(5, 7)
    first = torch.tensor([[BEGIN, 2, 4]])
    for found in (
        greedy(table.step, table.start([0]), first, end=END, longest=[3])[0],
        beam(table.step, table.start([0]), first, size=2, end=END, longest=[3])[0][0],
    ):
        assert found.logs == pytest.approx(table.logs(0, found.tokens, before=(BEGIN, 2, 4)), abs=1e-5)
    assert table.steps[0] == (1, 3)


def test_ties_go_to_the_better_beginning_and_the_lower_number() -> None:
    table = Fixed(torch.full((4, 4), 0.25))
    found = greedy(table.step, table.start([0, 1]), begin(2), end=END, longest=[3, 3])
    assert [one.tokens for one in found] == [(0, 0, 0)] * 2
    texts = [
        beam(table.step, table.start(range(rows)), begin(rows), size=2, end=3, longest=[2] * rows, best=2)
        for rows in (1, 3)
    ]
    assert texts[0] * 3 == texts[1]


def test_more_beams_than_words() -> None:
    table = Table(3, 5)
    found = beam(table.step, table.start([0]), begin(1), size=50, end=END, longest=[2], best=50)[0]
    assert len(found) == 7  # END; 2 words and END; 2 x 2 words cut off
    assert [one.tokens for one in found] == [text for _, text in exhaustive(table, 0, 2, 1.0)]


def test_scores_that_are_not_numbers_are_refused() -> None:
    class Broken(Table):
        def step(self, tokens: Tensor, state: Rows) -> Tensor:
            return super().step(tokens, state) * math.nan

    table = Broken(5, 0)
    with pytest.raises(RegardError, match="not numbers"):
        greedy(table.step, table.start([0]), begin(1), end=END, longest=[3])
    with pytest.raises(RegardError, match="not numbers"):
        beam(table.step, table.start([0]), begin(1), size=2, end=END, longest=[3])
    with pytest.raises(RegardError, match="not numbers"):
        sample(table.step, table.start([0]), begin(1), end=END, longest=[3], generator=torch.Generator())


def test_what_cannot_be_searched_is_refused() -> None:
    table = Table(4, 0)
    with pytest.raises(RegardError, match="2 lengths for 1 rows"):
        greedy(table.step, table.start([0]), begin(1), end=END, longest=[3, 3])
    with pytest.raises(RegardError, match="0 tokens cannot be written"):
        beam(table.step, table.start([0]), begin(1), size=2, end=END, longest=[0])
    with pytest.raises(RegardError, match="No beam"):
        beam(table.step, table.start([0]), begin(1), size=0, end=END, longest=[1])


def test_an_alpha_below_zero_and_no_finished_texts_are_refused() -> None:
    table = Table(4, 1)
    for wrong, told in (
        ({"alpha": -1.0}, "no alpha"),
        ({"alpha": float("nan")}, "no alpha"),
        ({"enough": 0}, "1 or more"),
    ):
        with pytest.raises(RegardError, match=told):
            beam(table.step, table.start([0]), begin(1), size=2, end=END, longest=[3], **wrong)
