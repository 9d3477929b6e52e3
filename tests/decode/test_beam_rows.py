"""The rows of beam search: which rows move, which stay, and that results do not depend on it."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.decode.beam import _assign_rows, beam
from regard.decode.topk import compact, to_numpy
from tests.decode.table_models import BOS, EOS, TableModel, TableState


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


def test_compact_moves_last_rows_into_gaps() -> None:
    for keep_mask in itertools.product((True, False), repeat=5):
        index = compact(np.array(keep_mask)).tolist()
        assert sorted(index) == [row for row in range(5) if keep_mask[row]]
        assert all(source == row or not keep_mask[row] for row, source in enumerate(index))


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
        beam(table.step, state, prompt, beam_size=4, eos=EOS, max_lengths=[8] * 3, suppressed=torch.tensor([EOS]))
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


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_to_numpy_keeps_values(kind: torch.dtype) -> None:
    logprobs, tokens = torch.tensor([[-0.5, -1.5]], dtype=kind), torch.tensor([[37_000, 3]])
    host_logprobs, host_tokens = to_numpy(logprobs, tokens)
    assert (host_logprobs.tolist(), host_tokens.tolist()) == ([[-0.5, -1.5]], [[37_000, 3]])
    assert host_logprobs.dtype == np.dtype(np.float64)
    assert host_tokens.dtype == np.dtype(np.int64)
