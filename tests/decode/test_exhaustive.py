"""Exhaustive search, and the number of tokens that each search considers."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.exhaustive import count_sequences, exhaustive
from regard.decode.greedy import greedy
from regard.decode.length_penalty import gnmt
from tests.decode.table_models import BOS, EOS, BigramModel, TableModel, TableState, iter_sequences
from tests.decode.table_models import score_all_sequences as by_hand


def make_prompt(rows: int) -> Tensor:
    return torch.full((rows, 1), BOS)


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.0])
def test_exhaustive_scores_every_sequence(length_penalty: float) -> None:
    table = TableModel(4, 5)
    max_lengths = [3, 1, 4]
    result = exhaustive(
        table.step,
        table.start(range(3)),
        make_prompt(3),
        eos=EOS,
        max_lengths=max_lengths,
        length_penalty=length_penalty,
        n_best=500,
    )
    for sentence, hypotheses in enumerate(result):
        expected = by_hand(table, sentence, max_lengths[sentence], length_penalty)
        assert [hypothesis.tokens for hypothesis in hypotheses] == [text for _, text in expected]
        assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx(
            [score for score, _ in expected], abs=1e-5
        )
        assert len(hypotheses) == count_sequences(4, max_lengths[sentence])
        for hypothesis in hypotheses:
            assert hypothesis.logprobs == pytest.approx(table.logprobs(sentence, hypothesis.tokens), abs=1e-5)
            assert hypothesis.ended == (hypothesis.tokens[-1] == EOS)
        total = sum(math.exp(sum(hypothesis.logprobs)) for hypothesis in hypotheses)
        assert total == pytest.approx(1.0, abs=1e-5)  # these are all sequences


def test_n_best_is_prefix_of_full_ranking() -> None:
    table = TableModel(4, 6)
    best_three = exhaustive(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[4], n_best=3)
    all_texts = exhaustive(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[4], n_best=500)
    assert best_three[0] == all_texts[0][:3]


def test_suppressed_tokens_are_in_no_sequence() -> None:
    table = TableModel(5, 1)
    suppress_tokens = torch.tensor([3, BOS])
    (hypotheses,) = exhaustive(
        table.step,
        table.start([0]),
        make_prompt(1),
        eos=EOS,
        max_lengths=[3],
        n_best=500,
        suppress_tokens=suppress_tokens,
    )
    assert {hypothesis.tokens for hypothesis in hypotheses} == set(iter_sequences(5, 3, frozenset({BOS, 3})))
    assert len(hypotheses) == count_sequences(3, 3)


def test_impossible_sequences_are_left_out() -> None:
    table = BigramModel(torch.tensor([[0.0, 0.4, 0.6], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    (hypotheses,) = exhaustive(
        table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[5], n_best=500, length_penalty=0.0
    )
    assert [hypothesis.tokens for hypothesis in hypotheses] == [(2, EOS), (EOS,)]


def test_any_length_penalty_function() -> None:
    table = TableModel(4, 2)
    (hypotheses,) = exhaustive(
        table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[3], n_best=500, length_penalty=gnmt(0.8)
    )
    for hypothesis in hypotheses:
        assert hypothesis.score == pytest.approx(sum(hypothesis.logprobs) / ((5 + len(hypothesis.tokens)) / 6) ** 0.8)
    assert [hypothesis.score for hypothesis in hypotheses] == sorted(
        (hypothesis.score for hypothesis in hypotheses), reverse=True
    )


def test_count_sequences() -> None:
    for vocabulary_size, max_new_tokens in product(range(2, 5), range(1, 4)):
        assert count_sequences(vocabulary_size, max_new_tokens) == len(
            list(iter_sequences(vocabulary_size, max_new_tokens))
        )
        assert count_sequences(vocabulary_size, max_new_tokens, has_eos=False) == vocabulary_size**max_new_tokens


def test_too_many_sequences_raise_with_their_count() -> None:
    table, suppress_tokens = TableModel(10, 0), torch.tensor([EOS])
    with pytest.raises(
        RegardError, match="7,381 sequences of up to 4 tokens over a vocabulary of 10; max_sequences is 7,000"
    ):
        exhaustive(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[4], max_sequences=7000)
    with pytest.raises(RegardError, match="6,561 sequences of up to 4 tokens over a vocabulary of 9"):
        exhaustive(
            table.step,
            table.start([0]),
            make_prompt(1),
            eos=EOS,
            max_lengths=[4],
            max_sequences=6560,
            suppress_tokens=suppress_tokens,
        )
    assert len(table.steps) == 2  # both after the first step
    exhaustive(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[4], max_sequences=7381)


def test_exhaustive_raises_on_nan() -> None:
    class Broken(TableModel):
        def step(self, tokens: Tensor, state: TableState) -> Tensor:
            return super().step(tokens, state) * math.nan

    table = Broken(5, 0)
    with pytest.raises(RegardError, match="not numbers"):
        exhaustive(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[3])


NO_EOS = -1  # not in the vocabulary: no sequence ends, as in the lectures' count


@pytest.mark.parametrize(("vocabulary_size", "max_new_tokens"), [(3, 5), (5, 3), (4, 4)])
def test_candidates_counted(vocabulary_size: int, max_new_tokens: int) -> None:
    """Vocabulary K, length N, beam size B: K^N, K N, at most B K N."""

    def count_considered(table: TableModel) -> list[int]:
        return [rows * read * vocabulary_size for rows, read in table.steps]  # every row scores all K tokens

    table = TableModel(vocabulary_size, 1)
    (hypotheses,) = exhaustive(
        table.step,
        table.start([0]),
        make_prompt(1),
        eos=NO_EOS,
        max_lengths=[max_new_tokens],
        n_best=vocabulary_size**max_new_tokens,
    )
    assert count_considered(table) == [
        vocabulary_size**length for length in range(1, max_new_tokens + 1)
    ]  # the last: K^N complete sequences
    assert len(hypotheses) == vocabulary_size**max_new_tokens
    table = TableModel(vocabulary_size, 1)
    greedy(table.step, table.start([0]), make_prompt(1), eos=NO_EOS, max_lengths=[max_new_tokens])
    assert sum(count_considered(table)) == vocabulary_size * max_new_tokens
    for size in (1, 2, 3, 7):
        table = TableModel(vocabulary_size, 1)
        beam(table.step, table.start([0]), make_prompt(1), beam_size=size, eos=NO_EOS, max_lengths=[max_new_tokens])
        rows = [
            min(size, vocabulary_size**length) for length in range(max_new_tokens)
        ]  # all prefixes, until there are B of them
        assert count_considered(table) == [vocabulary_size * count for count in rows]
        assert sum(count_considered(table)) <= size * vocabulary_size * max_new_tokens
        assert (sum(count_considered(table)) == vocabulary_size * max_new_tokens) == (size == 1)
