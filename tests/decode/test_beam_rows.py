"""How beam search keeps its rows: what moves, what stays, and what must not depend on it."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.decode.beam import _settled, beam
from regard.decode.rows import closed_up, on_host
from tests.decode.tables import BEGIN, END, Rows, Table


def test_as_many_beginnings_stay_in_their_row_as_can() -> None:
    for parents in itertools.product(range(4), repeat=4):
        (settled,) = _settled(np.array([parents]), 4).tolist()
        assert sorted(settled) == [0, 1, 2, 3]
        stays = sum(row == parent for row, parent in zip(settled, parents, strict=True))
        assert stays == len(set(parents))
        for parent in set(parents):  # the best of them stays
            assert settled[parents.index(parent)] == parent


def test_rows_of_other_sentences_do_not_matter() -> None:
    all_parents = np.array(list(itertools.product(range(3), repeat=3)))
    together = _settled(all_parents, 3).tolist()
    assert together == [_settled(one[None], 3)[0].tolist() for one in all_parents]
    assert _settled(np.zeros((2, 3), np.int64), 1).tolist() == [[0, 1, 2]] * 2


def test_places_of_those_that_leave_are_taken_by_the_last() -> None:
    for stay in itertools.product((True, False), repeat=5):
        index = closed_up(np.array(stay)).tolist()
        assert sorted(index) == [row for row in range(5) if stay[row]]
        assert all(found == row or not stay[row] for row, found in enumerate(index))


def test_the_model_is_asked_to_move_no_more_than_must_be() -> None:
    class Counting(Rows):
        moved: list[int] = []  # noqa: RUF012

        def reorder(self, index: Tensor) -> None:
            if index.numel() == len(self.histories):
                for sentence, parents in enumerate(index.view(-1, 4).tolist()):
                    rows = range(4 * sentence, 4 * sentence + 4)
                    Counting.moved.append(sum(row != parent for row, parent in zip(rows, parents, strict=True)))
                    assert Counting.moved[-1] == 4 - len(set(parents))
            super().reorder(index)

    for seed in range(10):
        table = Table(8, seed)
        state = Counting([0, 1, 2], [()] * 3)
        first = torch.full((3, 1), BEGIN)
        beam(table.step, state, first, size=4, end=END, longest=[8] * 3, never=torch.tensor([END]))
    assert 0 < sum(Counting.moved) < 2 * len(Counting.moved)


def test_the_better_beginning_wins_a_tie_in_whatever_row_it_is() -> None:
    """Word 3 after word 2 is as good as word 2 after word 3: the text that began better comes first."""

    def step(tokens: Tensor, state: Rows) -> Tensor:
        answers = []
        for row, new in enumerate(tokens.tolist()):
            state.histories[row] = (*state.histories[row], *new)
            place = len(state.histories[row])
            odds = {1: [0.0, 0.0, 0.3, 0.7], 2: [0.0, 0.0, 0.7, 0.3] if new[0] == 3 else [0.0, 0.0, 0.3, 0.7]}
            answers.append(torch.tensor(odds.get(place, [0.25] * 4)))
        return torch.stack(answers)[:, None].log()

    found = beam(step, Rows([0], [()]), torch.tensor([[BEGIN]]), size=4, end=END, longest=[2], best=4, alpha=0.0)[0]
    assert [one.tokens for one in found] == [(3, 2), (3, 3), (2, 3), (2, 2)]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_numbers_come_to_the_host_as_they_are(kind: torch.dtype) -> None:
    logs, words = torch.tensor([[-0.5, -1.5]], dtype=kind), torch.tensor([[37_000, 3]])
    seen, numbers = on_host(logs, words)
    assert (seen.tolist(), numbers.tolist()) == ([[-0.5, -1.5]], [[37_000, 3]])
    assert seen.dtype == np.dtype(np.float64)
    assert numbers.dtype == np.dtype(np.int64)
