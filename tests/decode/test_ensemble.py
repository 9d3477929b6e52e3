"""Ensembles and contrastive decoding, token by token."""

import math

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.contrastive import contrastive
from regard.decode.ensemble import ensemble
from regard.decode.filters import Filters
from regard.decode.greedy import greedy
from regard.decode.sample import sample
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
    contrastive_step, state = contrastive((first.step, first.start([0])), (second.step, second.start([0])))
    with pytest.raises(RegardError, match="expert's vocabulary has 4 tokens, the amateur's 5"):
        contrastive_step(PROMPT, state)
    for weights in ([1.0, 2.0], [-1.0], [0.0]):
        with pytest.raises(RegardError, match="cannot use the weights"):
            ensemble([(first.step, first.start([0]))], weights=weights)
    with pytest.raises(RegardError, match="of 0 models"):
        ensemble([])


def contrastive_logits(strength: float, plausibility: float, suppressed: Tensor | None = None) -> list[float]:
    first, second = make_model(FIRST_PROBABILITIES), make_model(SECOND_PROBABILITIES)
    members = (first.step, first.start([0])), (second.step, second.start([0]))
    step, state = contrastive(*members, strength=strength, plausibility=plausibility, suppressed=suppressed)
    return step(PROMPT, state)[0, 0].tolist()


def test_contrast_token_by_token() -> None:
    neg_inf = -math.inf
    assert contrastive_logits(1.0, 0.6) == [
        neg_inf,
        neg_inf,
        pytest.approx(math.log(0.3 / 0.5)),
        pytest.approx(9999, rel=1e-3),
    ]
    assert contrastive_logits(0.0, 0.5) == [neg_inf, *(pytest.approx(math.log(p)) for p in (0.2, 0.3, 0.4))]
    assert contrastive_logits(0.5, 0.1)[:3] == pytest.approx(
        [
            math.log(p) - 0.5 * math.log(q)
            for p, q in zip(FIRST_PROBABILITIES[:3].tolist(), SECOND_PROBABILITIES[:3].tolist(), strict=True)
        ]
    )
    assert contrastive_logits(1.0, 0.9, torch.tensor([3])) == [neg_inf, neg_inf, pytest.approx(math.log(0.6)), neg_inf]


def test_zero_strength_equals_min_p() -> None:
    expert, amateur = TableModel(6, 1), TableModel(6, 2)
    settings = {"eos": EOS, "max_lengths": [4] * 50}
    prompt = torch.full((50, 1), BOS)
    step, state = contrastive(
        (expert.step, expert.start([0] * 50)), (amateur.step, amateur.start([0] * 50)), strength=0.0, plausibility=0.3
    )
    contrastive_texts = sample(step, state, prompt, generator=torch.Generator().manual_seed(1), **settings)  # type: ignore[arg-type]
    expected = sample(
        expert.step,
        expert.start([0] * 50),
        prompt,
        generator=torch.Generator().manual_seed(1),
        filters=Filters(min_p=0.3),
        **settings,  # type: ignore[arg-type]
    )
    assert [hypothesis.tokens for hypothesis in contrastive_texts] == [hypothesis.tokens for hypothesis in expected]


def test_amateur_reads_same_tokens() -> None:
    expert, amateur = TableModel(5, 3), TableModel(5, 4)
    for sentence in range(5):
        states = expert.start([sentence]), amateur.start([sentence])
        step, state = contrastive((expert.step, states[0]), (amateur.step, states[1]), plausibility=0.05)
        (hypothesis,) = greedy(step, state, PROMPT, eos=EOS, max_lengths=[4])
        text: tuple[int, ...] = ()
        while len(text) < 4 and EOS not in text:
            expert_logprobs, amateur_logprobs = (
                table.logits(sentence, (BOS, *text)).log_softmax(dim=0) for table in (expert, amateur)
            )
            text += (
                int(
                    (expert_logprobs - amateur_logprobs)
                    .masked_fill(expert_logprobs < expert_logprobs.max() + math.log(0.05), -math.inf)
                    .argmax()
                ),
            )
        assert hypothesis.tokens == text


def test_invalid_contrastive_arguments_raise() -> None:
    table = TableModel(4, 1)
    for strength, plausibility in ((-1.0, 0.1), (1.0, 0.0), (1.0, 1.1)):
        with pytest.raises(RegardError, match="cannot use strength"):
            contrastive(
                (table.step, table.start([0])),
                (table.step, table.start([0])),
                strength=strength,
                plausibility=plausibility,
            )
