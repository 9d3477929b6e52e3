"""Several models as one, and one against another, word by word."""

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
from tests.decode.tables import BEGIN, END, Fixed, Table

FIRST = torch.tensor([[BEGIN]])
ONE, OTHER = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0.4, 0.1, 0.5, 0.0])


def model(row: Tensor) -> Fixed:
    return Fixed(row.expand(row.numel(), -1))


def answer(mean: str, weights: list[float] | None = None) -> list[float]:
    one, other = model(ONE), model(OTHER)
    parts = [(one.step, one.start([0])), (other.step, other.start([0]))]
    step, state = ensemble(parts, mean=mean, weights=weights)  # type: ignore[arg-type]
    return step(FIRST, state)[0, 0].softmax(dim=0).tolist()


def test_both_means() -> None:
    assert answer("probabilities") == pytest.approx(((ONE + OTHER) / 2).tolist())
    assert answer("probabilities", [3.0, 1.0]) == pytest.approx((0.75 * ONE + 0.25 * OTHER).tolist())
    product = ONE**0.5 * OTHER**0.5
    assert answer("logs") == pytest.approx((product / product.sum()).tolist())
    product = ONE**0.75 * OTHER**0.25
    assert answer("logs", [3.0, 1.0]) == pytest.approx((product / product.sum()).tolist())


@pytest.mark.parametrize("mean", ["probabilities", "logs"])
def test_a_weight_of_nothing_silences(mean: str) -> None:
    assert answer(mean, [1.0, 0.0]) == pytest.approx(ONE.tolist())


@pytest.mark.parametrize("mean", ["probabilities", "logs"])
def test_a_model_with_itself_is_itself(mean: str) -> None:
    for seed in range(5):
        table = Table(5, seed)
        first, longest = torch.full((3, 1), BEGIN), [5, 2, 4]
        step, state = ensemble([(table.step, table.start([0, 1, 2])) for _ in range(2)], mean=mean)  # type: ignore[arg-type]
        double = beam(step, state, first, size=3, end=END, longest=longest)
        plain = beam(table.step, table.start([0, 1, 2]), first, size=3, end=END, longest=longest)
        assert [one[0].tokens for one in double] == [one[0].tokens for one in plain]
        assert [one[0].score for one in double] == pytest.approx([one[0].score for one in plain], abs=1e-5)


def test_a_state_of_many_crops_all_of_them() -> None:
    one, other = Table(4, 1), Table(4, 2)
    states = [one.start([0, 1]), other.start([0, 1])]
    step, state = ensemble([(one.step, states[0]), (other.step, states[1])])
    step(torch.tensor([[0, 2, 3], [0, 3, 2]]), state)
    state.crop([1, 2])
    assert [rows.histories for rows in states] == [[(0,), (0, 3)]] * 2


def test_models_that_do_not_fit_are_refused() -> None:
    one, other = Table(4, 1), Table(5, 1)
    step, state = ensemble([(one.step, one.start([0])), (other.step, other.start([0]))])
    with pytest.raises(RegardError, match="4, 5 words"):
        step(FIRST, state)
    against, state = contrastive((one.step, one.start([0])), (other.step, other.start([0])))
    with pytest.raises(RegardError, match="4 words and the amateur 5"):
        against(FIRST, state)
    for weights in ([1.0, 2.0], [-1.0], [0.0]):
        with pytest.raises(RegardError, match="cannot be averaged"):
            ensemble([(one.step, one.start([0]))], weights=weights)
    with pytest.raises(RegardError, match="0 models"):
        ensemble([])


def contrast(strength: float, share: float, never: Tensor | None = None) -> list[float]:
    one, other = model(ONE), model(OTHER)
    parts = (one.step, one.start([0])), (other.step, other.start([0]))
    step, state = contrastive(*parts, strength=strength, share=share, never=never)
    return step(FIRST, state)[0, 0].tolist()


def test_contrast_word_by_word() -> None:
    nothing = -math.inf
    assert contrast(1.0, 0.6) == [nothing, nothing, pytest.approx(math.log(0.3 / 0.5)), pytest.approx(9999, rel=1e-3)]
    assert contrast(0.0, 0.5) == [nothing, *(pytest.approx(math.log(p)) for p in (0.2, 0.3, 0.4))]
    assert contrast(0.5, 0.1)[:3] == pytest.approx(
        [math.log(p) - 0.5 * math.log(q) for p, q in zip(ONE[:3].tolist(), OTHER[:3].tolist(), strict=True)]
    )
    assert contrast(1.0, 0.9, torch.tensor([3])) == [nothing, nothing, pytest.approx(math.log(0.6)), nothing]


def test_without_strength_it_is_min_p() -> None:
    expert, amateur = Table(6, 1), Table(6, 2)
    settings = {"end": END, "longest": [4] * 50}
    first = torch.full((50, 1), BEGIN)
    step, state = contrastive(
        (expert.step, expert.start([0] * 50)), (amateur.step, amateur.start([0] * 50)), strength=0.0, share=0.3
    )
    found = sample(step, state, first, generator=torch.Generator().manual_seed(1), **settings)  # type: ignore[arg-type]
    plain = sample(
        expert.step,
        expert.start([0] * 50),
        first,
        generator=torch.Generator().manual_seed(1),
        filters=Filters(min_p=0.3),
        **settings,  # type: ignore[arg-type]
    )
    assert [one.tokens for one in found] == [one.tokens for one in plain]


def test_the_amateur_reads_along() -> None:
    expert, amateur = Table(5, 3), Table(5, 4)
    for sentence in range(5):
        states = expert.start([sentence]), amateur.start([sentence])
        step, state = contrastive((expert.step, states[0]), (amateur.step, states[1]), share=0.05)
        (found,) = greedy(step, state, FIRST, end=END, longest=[4])
        text: tuple[int, ...] = ()
        while len(text) < 4 and END not in text:
            mine, theirs = (one.logits(sentence, (BEGIN, *text)).log_softmax(dim=0) for one in (expert, amateur))
            text += (int((mine - theirs).masked_fill(mine < mine.max() + math.log(0.05), -math.inf).argmax()),)
        assert found.tokens == text


def test_contrasts_that_mean_nothing_are_refused() -> None:
    one = Table(4, 1)
    for strength, share in ((-1.0, 0.1), (1.0, 0.0), (1.0, 1.1)):
        with pytest.raises(RegardError, match="No contrast"):
            contrastive((one.step, one.start([0])), (one.step, one.start([0])), strength=strength, share=share)
