"""Greedy and beam search, compared with all sequences, on models without a network."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beam import LOOKAHEAD, _assign_rows, beam
from regard.decode.greedy import greedy
from regard.decode.sample import sample
from tests.decode.table_models import (
    BOS,
    EOS,
    MAX_LENGTHS,
    SENTENCES,
    BigramModel,
    History,
    TableModel,
    TableState,
    check_hypothesis,
    make_prompt,
    score_all_sequences,
)

LENGTH_PENALTIES = [0.0, 0.6, 1.0, 2.0]


@pytest.mark.parametrize("length_penalty", LENGTH_PENALTIES)
def test_full_beam_ranks_all_sequences(length_penalty: float) -> None:
    for seed in range(15):
        table = TableModel(4, seed)
        result = beam(
            table.step,
            table.start(SENTENCES),
            make_prompt(4),
            beam_size=81,
            eos=EOS,
            max_lengths=MAX_LENGTHS,
            length_penalty=length_penalty,
            n_best=3,
            exact=True,
        )
        for sentence, hypotheses in zip(SENTENCES, result, strict=True):
            expected = score_all_sequences(table, sentence, MAX_LENGTHS[sentence], length_penalty)[:3]
            assert [hypothesis.tokens for hypothesis in hypotheses] == [text for _, text in expected]
            for hypothesis in hypotheses:
                check_hypothesis(hypothesis, table, sentence, length_penalty)


@pytest.mark.parametrize("length_penalty", LENGTH_PENALTIES)
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("exact", [True, False])
def test_search_stops_by_its_bound(size: int, length_penalty: float, exact: bool) -> None:
    for seed in range(20):
        table = TableModel(5, seed)
        hypotheses = beam(
            table.step,
            table.start([0]),
            make_prompt(1),
            beam_size=size,
            eos=EOS,
            max_lengths=[5],
            length_penalty=length_penalty,
            n_best=2,
            exact=exact,
        )[0]
        all_finished, steps, longest = reference_beam(table, 0, size, 5, length_penalty, 2, exact)
        # What the bound proves: nothing of up to `longest` tokens is better than what was found.
        expected = [text for _, text in all_finished if len(text) <= longest]
        found = [hypothesis.tokens for hypothesis in hypotheses if len(hypothesis.tokens) <= longest]
        assert found == expected[: len(found)]
        assert len(hypotheses) == min(2, len(all_finished))
        assert len(table.steps) == steps
        assert longest == 5 or not exact


def reference_beam(
    table: TableModel, sentence: int, size: int, max_new_tokens: int, length_penalty: float, n_best: int, exact: bool
) -> tuple[list[tuple[float, History]], int, int]:
    """Beam search as its docstring defines it, without stopping; the step at which it may stop, and the length L."""
    open_texts: list[tuple[float, History]] = [(0.0, ())]
    finished: list[tuple[float, History]] = []
    steps = longest = max_new_tokens
    for length in range(1, max_new_tokens + 1):
        candidates = []
        for total, text in open_texts:
            logprobs = table.logits(sentence, (BOS, *text)).log_softmax(dim=-1).tolist()
            candidates += [(total + logprob, (*text, token)) for token, logprob in enumerate(logprobs)]
        candidates = sorted(candidates, reverse=True)[: 2 * size]
        finished_now = [
            candidate for candidate in candidates[:size] if candidate[1][-1] == EOS or length == max_new_tokens
        ]
        finished += [(total / length**length_penalty, text) for total, text in finished_now]
        open_texts = [candidate for candidate in candidates if candidate[1][-1] != EOS][:size]
        ranked = sorted(finished, reverse=True)[:n_best]
        if len(ranked) < n_best or steps < max_new_tokens:
            continue
        bounded_length = max_new_tokens if exact else min(length + LOOKAHEAD, max_new_tokens)
        if ranked[-1][0] >= open_texts[0][0] / bounded_length**length_penalty:
            steps, longest = length, bounded_length
    return sorted(finished, reverse=True), steps, longest


def test_bound_stops_before_maximum_length() -> None:
    probabilities = torch.tensor([[0.0, 0.01, 0.98, 0.01], [0.25] * 4, [0.005, 0.98, 0.01, 0.005], [0.25] * 4])
    for length_penalty, exact, max_read in ((0.0, True, 3), (1.0, True, 25), (1.0, False, 4)):
        table = BigramModel(probabilities)
        state = table.start([0])
        (hypotheses,) = beam(
            table.step,
            state,
            make_prompt(1),
            beam_size=2,
            eos=EOS,
            max_lengths=[50],
            length_penalty=length_penalty,
            exact=exact,
        )
        assert hypotheses[0].tokens == (2, EOS)
        assert max(map(len, state.histories)) <= max_read


def test_stop_after_stops_at_first_finished_hypothesis() -> None:
    table = BigramModel(torch.tensor([[0.0, 0.5, 0.4, 0.1], [0.25] * 4, [0.001, 0.997, 0.001, 0.001], [0.25] * 4]))
    exact = beam(
        table.step, table.start([0]), make_prompt(1), beam_size=2, eos=EOS, max_lengths=[9], length_penalty=1.0
    )[0][0]
    early_stopped = beam(
        table.step,
        table.start([0]),
        make_prompt(1),
        beam_size=2,
        eos=EOS,
        max_lengths=[9],
        length_penalty=1.0,
        stop_after=1,
    )[0][0]
    assert early_stopped.tokens == (EOS,)  # log 0.5, sooner
    assert exact.tokens == (2, EOS)  # log 0.4 / 2, better
    assert exact.score > early_stopped.score


@pytest.mark.parametrize("size", [1, 3])
def test_batched_beam_equals_single_beams(size: int) -> None:
    for seed in range(10):
        table = TableModel(6, seed)
        batched = beam(
            table.step, table.start(SENTENCES), make_prompt(4), beam_size=size, eos=EOS, max_lengths=MAX_LENGTHS
        )
        for sentence in SENTENCES:
            alone = beam(
                table.step,
                table.start([sentence]),
                make_prompt(1),
                beam_size=size,
                eos=EOS,
                max_lengths=[MAX_LENGTHS[sentence]],
            )
            assert alone[0] == batched[sentence]


def test_finished_rows_are_removed() -> None:
    table = TableModel(4, 1)
    max_lengths = [1, 2, 3, 4, 5, 6]
    state = table.start(range(6))
    greedy(table.step, state, make_prompt(6), eos=EOS, max_lengths=max_lengths)
    assert state.reordered_row_counts == sorted(state.reordered_row_counts, reverse=True)
    assert state.reordered_row_counts
    assert state.reordered_row_counts[-1] < 3
    rows = [shape[0] for shape in table.steps]
    assert rows[0] == 6
    assert rows == sorted(rows, reverse=True)
    table = TableModel(4, 1)
    beam(table.step, table.start(range(6)), make_prompt(6), beam_size=3, eos=EOS, max_lengths=max_lengths)
    rows = [shape[0] for shape in table.steps]
    assert rows[0] == 6  # one hypothesis each
    assert rows[1] <= 5 * 3  # the maximum length of the first sentence is one token
    assert all(width == 1 for _, width in table.steps)
    state = table.start([0])
    beam(table.step, state, make_prompt(1), beam_size=1, eos=EOS, max_lengths=[4])
    assert state.reordered_row_counts == []  # rows that stay are not copied


def test_suppressed_tokens_are_never_generated() -> None:
    suppress_tokens = frozenset({BOS, 3})
    for seed in range(10):
        table = TableModel(5, seed)
        suppressed_ids = torch.tensor(sorted(suppress_tokens))
        hypotheses = beam(
            table.step,
            table.start([0]),
            make_prompt(1),
            beam_size=81,
            eos=EOS,
            max_lengths=[3],
            suppress_tokens=suppressed_ids,
            n_best=2,
        )[0]
        expected = score_all_sequences(table, 0, 3, 1.0, suppress_tokens)[:2]
        assert [hypothesis.tokens for hypothesis in hypotheses] == [text for _, text in expected]
        check_hypothesis(hypotheses[0], table, 0, 1.0)  # probabilities stay the model's own
        greedy_hypothesis = greedy(
            table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[3], suppress_tokens=suppressed_ids
        )[0]
        assert not suppress_tokens & set(greedy_hypothesis.tokens)


def test_prompt_is_read_and_not_returned() -> None:
    table = TableModel(5, 7)
    prompt = torch.tensor([[BOS, 2, 4]])
    for hypothesis in (
        greedy(table.step, table.start([0]), prompt, eos=EOS, max_lengths=[3])[0],
        beam(table.step, table.start([0]), prompt, beam_size=2, eos=EOS, max_lengths=[3])[0][0],
    ):
        assert hypothesis.logprobs == pytest.approx(table.logprobs(0, hypothesis.tokens, prompt=(BOS, 2, 4)), abs=1e-5)
    assert table.steps[0] == (1, 3)


def test_ties_prefer_better_hypothesis_and_lower_id() -> None:
    table = BigramModel(torch.full((4, 4), 0.25))
    hypotheses = greedy(table.step, table.start([0, 1]), make_prompt(2), eos=EOS, max_lengths=[3, 3])
    assert [hypothesis.tokens for hypothesis in hypotheses] == [(0, 0, 0)] * 2
    texts = [
        beam(
            table.step,
            table.start(range(rows)),
            make_prompt(rows),
            beam_size=2,
            eos=3,
            max_lengths=[2] * rows,
            n_best=2,
        )
        for rows in (1, 3)
    ]
    assert texts[0] * 3 == texts[1]


def test_beam_size_above_vocabulary_size() -> None:
    table = TableModel(3, 5)
    hypotheses = beam(table.step, table.start([0]), make_prompt(1), beam_size=50, eos=EOS, max_lengths=[2], n_best=50)[
        0
    ]
    assert len(hypotheses) == 7  # eos; 2 tokens and eos; 2 x 2 tokens cut off
    assert [hypothesis.tokens for hypothesis in hypotheses] == [
        text for _, text in score_all_sequences(table, 0, 2, 1.0)
    ]


def test_nan_logits_raise() -> None:
    class Broken(TableModel):
        def step(self, tokens: Tensor, state: TableState) -> Tensor:
            return super().step(tokens, state) * math.nan

    table = Broken(5, 0)
    with pytest.raises(RegardError, match="not numbers"):
        greedy(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[3])
    with pytest.raises(RegardError, match="not numbers"):
        beam(table.step, table.start([0]), make_prompt(1), beam_size=2, eos=EOS, max_lengths=[3])
    with pytest.raises(RegardError, match="not numbers"):
        sample(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[3], generator=torch.Generator())


def test_invalid_search_arguments_raise() -> None:
    table = TableModel(4, 0)
    with pytest.raises(RegardError, match="max_lengths has 2 values, the prompt has 1 rows"):
        greedy(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[3, 3])
    with pytest.raises(RegardError, match="max_lengths must be at least 1, got 0"):
        beam(table.step, table.start([0]), make_prompt(1), beam_size=2, eos=EOS, max_lengths=[0])
    with pytest.raises(RegardError, match="got beam_size=0"):
        beam(table.step, table.start([0]), make_prompt(1), beam_size=0, eos=EOS, max_lengths=[1])


def test_invalid_length_penalty_and_stop_after_raise() -> None:
    table = TableModel(4, 1)
    for arguments, message in (
        ({"length_penalty": -1.0}, "length penalty must be at least 0"),
        ({"length_penalty": float("nan")}, "length penalty must be at least 0"),
        ({"stop_after": 0}, "1 or more"),
    ):
        with pytest.raises(RegardError, match=message):
            beam(table.step, table.start([0]), make_prompt(1), beam_size=2, eos=EOS, max_lengths=[3], **arguments)


def test_first_continuation_stays_in_its_row() -> None:
    for parents in itertools.product(range(4), repeat=4):
        (rows,) = _assign_rows(np.array([parents]), 4).tolist()
        assert sorted(rows) == [0, 1, 2, 3]
        stay_count = sum(row == parent for row, parent in zip(rows, parents, strict=True))
        assert stay_count == len(set(parents))
        for parent in set(parents):  # the best continuation stays
            assert rows[parents.index(parent)] == parent


def test_row_assignment_is_independent_per_sentence() -> None:
    all_parents = np.array(list(itertools.product(range(3), repeat=3)))
    batched = _assign_rows(all_parents, 3).tolist()
    assert batched == [_assign_rows(parents[None], 3)[0].tolist() for parents in all_parents]
    assert _assign_rows(np.zeros((2, 3), np.int64), 1).tolist() == [[0, 1, 2]] * 2


def test_reorder_moves_as_few_rows_as_possible() -> None:
    class Counting(TableState):
        moved: list[int] = []  # noqa: RUF012

        def reorder(self, index: Tensor) -> None:
            if index.numel() == len(self.histories):
                for sentence, parents in enumerate(index.view(-1, 4).tolist()):
                    rows = range(4 * sentence, 4 * sentence + 4)
                    Counting.moved.append(sum(row != parent for row, parent in zip(rows, parents, strict=True)))
                    assert Counting.moved[-1] == 4 - len(set(parents))
            super().reorder(index)

    for seed in range(10):
        table = TableModel(8, seed)
        state = Counting([0, 1, 2], [()] * 3)
        prompt = torch.full((3, 1), BOS)
        beam(table.step, state, prompt, beam_size=4, eos=EOS, max_lengths=[8] * 3, suppress_tokens=torch.tensor([EOS]))
    assert 0 < sum(Counting.moved) < 2 * len(Counting.moved)


def test_better_hypothesis_wins_tie_in_any_row() -> None:
    """Token 3 after token 2 scores the same as token 2 after token 3: the better prefix comes first."""

    def step(tokens: Tensor, state: TableState) -> Tensor:
        probabilities = []
        for row, new_tokens in enumerate(tokens.tolist()):
            state.histories[row] = (*state.histories[row], *new_tokens)
            length = len(state.histories[row])
            odds = {1: [0.0, 0.0, 0.3, 0.7], 2: [0.0, 0.0, 0.7, 0.3] if new_tokens[0] == 3 else [0.0, 0.0, 0.3, 0.7]}
            probabilities.append(torch.tensor(odds.get(length, [0.25] * 4)))
        return torch.stack(probabilities)[:, None].log()

    hypotheses = beam(
        step,
        TableState([0], [()]),
        torch.tensor([[BOS]]),
        beam_size=4,
        eos=EOS,
        max_lengths=[2],
        n_best=4,
        length_penalty=0.0,
    )[0]
    assert [hypothesis.tokens for hypothesis in hypotheses] == [(3, 2), (3, 3), (2, 3), (2, 2)]
