"""Ensembles, token by token."""

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.ensemble import ensemble
from tests.decode.table_models import BOS, EOS, BigramModel, TableModel

PROMPT = torch.tensor([[BOS]])
FIRST_PROBABILITIES, SECOND_PROBABILITIES = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0.4, 0.1, 0.5, 0.0])


def make_model(row: Tensor) -> BigramModel:
    return BigramModel(row.expand(row.numel(), -1))


def ensemble_probabilities(mean: str, weights: list[float] | None = None) -> list[float]:
    first, second = make_model(FIRST_PROBABILITIES), make_model(SECOND_PROBABILITIES)
    members = [(first.step, first.start([0])), (second.step, second.start([0]))]
    step, state = ensemble(members, mean=mean, weights=weights)  # type: ignore[arg-type]
    return step(PROMPT, state)[0, 0].softmax(dim=0).tolist()


def test_both_means() -> None:
    assert ensemble_probabilities("probabilities") == pytest.approx(
        ((FIRST_PROBABILITIES + SECOND_PROBABILITIES) / 2).tolist()
    )
    assert ensemble_probabilities("probabilities", [3.0, 1.0]) == pytest.approx(
        (0.75 * FIRST_PROBABILITIES + 0.25 * SECOND_PROBABILITIES).tolist()
    )
    product = FIRST_PROBABILITIES**0.5 * SECOND_PROBABILITIES**0.5
    assert ensemble_probabilities("logprobs") == pytest.approx((product / product.sum()).tolist())
    product = FIRST_PROBABILITIES**0.75 * SECOND_PROBABILITIES**0.25
    assert ensemble_probabilities("logprobs", [3.0, 1.0]) == pytest.approx((product / product.sum()).tolist())


@pytest.mark.parametrize("mean", ["probabilities", "logprobs"])
def test_zero_weight_removes_model(mean: str) -> None:
    assert ensemble_probabilities(mean, [1.0, 0.0]) == pytest.approx(FIRST_PROBABILITIES.tolist())


@pytest.mark.parametrize("mean", ["probabilities", "logprobs"])
def test_ensemble_of_identical_models_equals_model(mean: str) -> None:
    for seed in range(5):
        table = TableModel(5, seed)
        prompt, max_lengths = torch.full((3, 1), BOS), [5, 2, 4]
        step, state = ensemble([(table.step, table.start([0, 1, 2])) for _ in range(2)], mean=mean)  # type: ignore[arg-type]
        double = beam(step, state, prompt, beam_size=3, eos=EOS, max_lengths=max_lengths)
        expected = beam(table.step, table.start([0, 1, 2]), prompt, beam_size=3, eos=EOS, max_lengths=max_lengths)
        assert [hypotheses[0].tokens for hypotheses in double] == [hypotheses[0].tokens for hypotheses in expected]
        assert [hypotheses[0].score for hypotheses in double] == pytest.approx(
            [hypotheses[0].score for hypotheses in expected], abs=1e-5
        )


def test_ensemble_state_crops_every_state() -> None:
    first, second = TableModel(4, 1), TableModel(4, 2)
    states = [first.start([0, 1]), second.start([0, 1])]
    step, state = ensemble([(first.step, states[0]), (second.step, states[1])])
    step(torch.tensor([[0, 2, 3], [0, 3, 2]]), state)
    state.crop([1, 2])
    assert [rows.histories for rows in states] == [[(0,), (0, 3)]] * 2


def test_mismatched_ensemble_members_raise() -> None:
    first, second = TableModel(4, 1), TableModel(5, 1)
    step, state = ensemble([(first.step, first.start([0])), (second.step, second.start([0]))])
    with pytest.raises(RegardError, match="4, 5 tokens"):
        step(PROMPT, state)
    for weights in ([1.0, 2.0], [-1.0], [0.0]):
        with pytest.raises(RegardError, match="cannot use the weights"):
            ensemble([(first.step, first.start([0]))], weights=weights)
    with pytest.raises(RegardError, match="of 0 models"):
        ensemble([])
