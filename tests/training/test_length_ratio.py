"""A few odd pairs of a corpus do not make every later search slower."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.beam import beam
from regard.tasks.translation.translator import EXTRA_TOKENS
from regard.training.length_ratio import estimate_max_length_ratio
from tests.decode.table_models import BOS, EOS, TableState

Ratios = NDArray[np.float64]


class UnsureModel:
    """Token 2 has probability 0.6 and eos 0.3, always: the longer the better, so searches run to the maximum length."""

    def __init__(self, endless: frozenset[int] = frozenset()) -> None:
        self.endless = endless  # sentences that never end
        self.steps = self.rows = 0

    def step(self, tokens: Tensor, state: TableState) -> Tensor:
        self.steps += 1
        self.rows += tokens.size(0)
        probabilities = torch.tensor([[0.05, 0.3, 0.6, 0.05], [0.05, 0.9, 0.03, 0.02], [0.05, 1e-9, 0.9, 0.05]])
        kinds = [2 if sentence in self.endless else int(bool(self.endless)) for sentence in state.sentences]
        return probabilities.log()[kinds][:, None]


def count_steps(ratio: float, source_length: int = 20) -> int:
    """Count the decoder steps of one search."""
    model, state = UnsureModel(), TableState([0], [()])
    max_lengths = [math.ceil(ratio * source_length) + EXTRA_TOKENS]
    beam(model.step, state, torch.full((1, 1), BOS), beam_size=4, eos=EOS, max_lengths=max_lengths)
    return model.steps


def make_ratios(odd: int) -> Ratios:
    """Ratios of 20,000 pairs, of which some are misaligned: a long target beside three source tokens."""
    rng = np.random.default_rng(1)
    return np.concatenate((rng.normal(1.1, 0.15, 20_000 - odd).clip(0.3, 1.8), rng.uniform(30, 80, odd)))


@pytest.mark.parametrize("odd", [40, 150, 2000])
def test_odd_pairs_do_not_make_searches_slower(odd: int) -> None:
    clean = max(2.0, estimate_max_length_ratio([make_ratios(0)]))
    ratio = max(2.0, estimate_max_length_ratio([make_ratios(odd)]))
    assert count_steps(ratio) <= 1.6 * count_steps(clean)
    assert count_steps(float(np.quantile(make_ratios(odd), 0.999))) > 10 * count_steps(clean)  # the plain quantile


def test_real_targets_are_not_cut() -> None:
    assert estimate_max_length_ratio([np.full(100, 8.3)]) == 8.3
    wide = np.random.default_rng(2).lognormal(0.0, 0.25, 50_000)  # as wide as short sentences are
    assert np.mean(wide > estimate_max_length_ratio([wide[:20_000], wide[20_000:]])) <= 0.001
    scan = np.concatenate((np.full(700, 1.5), np.full(250, 2.5), np.full(50, 4.9)))  # commands with "around thrice"
    assert estimate_max_length_ratio([scan]) == 4.9


def test_an_endless_sentence_does_not_cost_the_rest_of_the_batch() -> None:
    model, state = UnsureModel(frozenset({3})), TableState(list(range(8)), [()] * 8)
    found = beam(model.step, state, torch.full((8, 1), BOS), beam_size=4, eos=EOS, max_lengths=[200] * 8)
    assert [len(hypotheses[0].tokens) for hypotheses in found] == [1, 1, 1, 200, 1, 1, 1, 1]
    assert model.steps == 200
    assert model.rows < 4 * 200 + 8 * 4 * 30
