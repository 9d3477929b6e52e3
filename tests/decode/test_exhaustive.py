"""Every text there is, and how many words each search considers."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.exhaustive import exhaustive, number_of_texts
from regard.decode.greedy import greedy
from regard.decode.lengths import gnmt
from tests.decode.tables import BEGIN, END, Fixed, Rows, Table, texts
from tests.decode.tables import exhaustive as by_hand


def begin(rows: int) -> Tensor:
    return torch.full((rows, 1), BEGIN)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_all_texts_are_compared(alpha: float) -> None:
    table = Table(4, 5)
    longest = [3, 1, 4]
    found = exhaustive(table.step, table.start(range(3)), begin(3), end=END, longest=longest, alpha=alpha, best=500)
    for sentence, hypotheses in enumerate(found):
        expected = by_hand(table, sentence, longest[sentence], alpha)
        assert [one.tokens for one in hypotheses] == [text for _, text in expected]
        assert [one.score for one in hypotheses] == pytest.approx([score for score, _ in expected], abs=1e-5)
        assert len(hypotheses) == number_of_texts(4, longest[sentence])
        for one in hypotheses:
            assert one.logs == pytest.approx(table.logs(sentence, one.tokens), abs=1e-5)
            assert one.ended == (one.tokens[-1] == END)
        total = sum(math.exp(sum(one.logs)) for one in hypotheses)
        assert total == pytest.approx(1.0, abs=1e-5)  # they are all there is


def test_the_best_are_those_of_all() -> None:
    table = Table(4, 6)
    few = exhaustive(table.step, table.start([0]), begin(1), end=END, longest=[4], best=3)
    everything = exhaustive(table.step, table.start([0]), begin(1), end=END, longest=[4], best=500)
    assert few[0] == everything[0][:3]


def test_words_that_are_never_written_are_in_no_text() -> None:
    table = Table(5, 1)
    never = torch.tensor([3, BEGIN])
    (found,) = exhaustive(table.step, table.start([0]), begin(1), end=END, longest=[3], best=500, never=never)
    assert {one.tokens for one in found} == set(texts(5, 3, frozenset({BEGIN, 3})))
    assert len(found) == number_of_texts(3, 3)


def test_impossible_texts_are_none() -> None:
    table = Fixed(torch.tensor([[0.0, 0.4, 0.6], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    (found,) = exhaustive(table.step, table.start([0]), begin(1), end=END, longest=[5], best=500, alpha=0.0)
    assert [one.tokens for one in found] == [(2, END), (END,)]


def test_any_normaliser() -> None:
    table = Table(4, 2)
    (found,) = exhaustive(table.step, table.start([0]), begin(1), end=END, longest=[3], best=500, alpha=gnmt(0.8))
    for one in found:
        assert one.score == pytest.approx(sum(one.logs) / ((5 + len(one.tokens)) / 6) ** 0.8)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_how_many_texts_there_are() -> None:
    for words, longest in product(range(2, 5), range(1, 4)):
        assert number_of_texts(words, longest) == len(list(texts(words, longest)))
        assert number_of_texts(words, longest, ends=False) == words**longest


def test_too_many_texts_are_refused_with_their_number() -> None:
    table, never = Table(10, 0), torch.tensor([END])
    with pytest.raises(RegardError, match="7,381 texts of up to 4 tokens over 10 words; 7,000 can be compared"):
        exhaustive(table.step, table.start([0]), begin(1), end=END, longest=[4], most=7000)
    with pytest.raises(RegardError, match="6,561 texts of up to 4 tokens over 9 words"):
        exhaustive(table.step, table.start([0]), begin(1), end=END, longest=[4], most=6560, never=never)
    assert len(table.steps) == 2  # both after the first look
    exhaustive(table.step, table.start([0]), begin(1), end=END, longest=[4], most=7381)


def test_numbers_that_are_none_are_refused() -> None:
    class Broken(Table):
        def step(self, tokens: Tensor, state: Rows) -> Tensor:
            return super().step(tokens, state) * math.nan

    table = Broken(5, 0)
    with pytest.raises(RegardError, match="not numbers"):
        exhaustive(table.step, table.start([0]), begin(1), end=END, longest=[3])


NO_END = -1  # a word that does not exist: nothing ends, as in the lectures' count


@pytest.mark.parametrize(("words", "longest"), [(3, 5), (5, 3), (4, 4)])
def test_candidates_counted(words: int, longest: int) -> None:
    """K words, N tokens, B beams: K^N, K N, at most B K N."""

    def considered(table: Table) -> list[int]:
        return [rows * read * words for rows, read in table.steps]  # every row is asked for all K words

    table = Table(words, 1)
    (found,) = exhaustive(table.step, table.start([0]), begin(1), end=NO_END, longest=[longest], best=words**longest)
    assert considered(table) == [words**place for place in range(1, longest + 1)]  # the last: K^N whole texts
    assert len(found) == words**longest
    table = Table(words, 1)
    greedy(table.step, table.start([0]), begin(1), end=NO_END, longest=[longest])
    assert sum(considered(table)) == words * longest
    for size in (1, 2, 3, 7):
        table = Table(words, 1)
        beam(table.step, table.start([0]), begin(1), size=size, end=NO_END, longest=[longest])
        rows = [min(size, words**place) for place in range(longest)]  # all beginnings, until there are B of them
        assert considered(table) == [words * count for count in rows]
        assert sum(considered(table)) <= size * words * longest
        assert (sum(considered(table)) == words * longest) == (size == 1)
