"""R-drop: the fused pass against torch's own divergences, and a run that trains with it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.rows import IGNORE_INDEX
from regard.train.agreement import agreeing_class_loss, agreeing_word_loss
from regard.train.engine import Gradients
from regard.train.loss import contest, word_loss
from tests.train.made import trainer
from tests.train.runs import FAMILIES

PLACES, WIDTH, WORDS, STRENGTH = 37, 8, 50, 5.0


def inputs(bias: bool, kind: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(kind).requires_grad_()

    labels = torch.randint(WORDS, (PLACES,), generator=generator).repeat(2)
    return draw(2 * PLACES, WIDTH), labels, draw(WORDS, WIDTH), draw(WORDS) if bias else None


def by_torch(x: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float) -> Tensor:
    """The paper's formula, halved, in torch's own functions."""
    logits = F.linear(x, weight, bias)  # (2 N, V)
    wrong = F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    p, q = logits.log_softmax(dim=-1).chunk(2)
    apart = sum(F.kl_div(one, other, log_target=True, reduction="sum") for one, other in ((p, q), (q, p)))
    return (wrong + STRENGTH / 2 * apart) / 2


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 16, 1000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_the_formula_in_values_and_gradients(bias: bool, smoothing: float, rows: int) -> None:
    given = inputs(bias)
    learning = [tensor for tensor in given if tensor is not None and tensor.requires_grad]
    ours = agreeing_word_loss(*given, smoothing, rows, STRENGTH)
    theirs = by_torch(*given, smoothing)
    torch.testing.assert_close(ours.total, theirs, rtol=1e-10, atol=0)
    for mine, his in zip(
        torch.autograd.grad(ours.total * 0.37, learning), torch.autograd.grad(theirs * 0.37, learning), strict=True
    ):
        torch.testing.assert_close(mine, his, rtol=1e-8, atol=1e-10)


def test_one_row_at_a_time_means_one_pair_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: set[int] = set()

    def seen(logits: torch.Tensor, *rest: Any) -> Any:
        sizes.add(logits.size(0))
        return contest(logits, *rest)

    monkeypatch.setattr("regard.train.agreement.contest", seen)
    agreeing_word_loss(*inputs(False), 0.0, 1, STRENGTH)
    assert sizes == {2}


def test_without_strength_it_is_the_mean_of_both_passes() -> None:
    given = inputs(bias=False)
    both, paired = word_loss(*given, 0.1), agreeing_word_loss(*given, 0.1, rows=6, strength=0.0)
    assert paired.right == both.right / 2 > 0
    torch.testing.assert_close(paired.total, both.total / 2)
    torch.testing.assert_close(paired.negative_log_likelihood, both.negative_log_likelihood / 2)


def test_two_passes_that_agree_lose_nothing_by_it() -> None:
    x, labels, weight, bias = inputs(bias=True)
    x = x[:PLACES].repeat(2, 1)
    one = word_loss(x[:PLACES], labels[:PLACES], weight, bias, 0.1)
    torch.testing.assert_close(agreeing_word_loss(x, labels, weight, bias, 0.1, 8, STRENGTH).total, one.total)


@pytest.mark.parametrize("rows", [0, 8])
def test_a_batch_without_places_loses_nothing(rows: int) -> None:
    x, labels, weight, bias = inputs(bias=True)
    found = agreeing_word_loss(x[:0], labels[:0], weight, bias, 0.1, rows, STRENGTH)
    assert found.total == 0
    assert not torch.autograd.grad(found.total, weight)[0].any()


@pytest.mark.parametrize("rows", [8, 32])  # 74 rows: of 32, the last 10 are filled up
def test_under_autocast_it_is_near_the_exact_figure(rows: int) -> None:
    given = inputs(bias=False, kind=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = agreeing_word_loss(*given, 0.1, rows, STRENGTH)
    exact = by_torch(*given, 0.1)
    assert ours.total.dtype == torch.float32
    torch.testing.assert_close(ours.total, exact, rtol=0.02, atol=0)
    for found, wanted in zip(
        *(torch.autograd.grad(one, (given[0], given[2])) for one in (ours.total, exact)), strict=True
    ):
        assert (found - wanted).norm() < 0.02 * wanted.norm()


def test_classes_agree_too_and_unlabelled_places_do_not_count() -> None:
    x, labels, weight, bias = inputs(bias=True)
    logits = F.linear(x, weight, bias)
    torch.testing.assert_close(
        agreeing_class_loss(logits, labels, 0.1, STRENGTH).total, by_torch(x, labels, weight, bias, 0.1)
    )
    half = labels.clone()
    half[[*range(5), *range(PLACES, PLACES + 5)]] = IGNORE_INDEX
    kept = half != IGNORE_INDEX
    torch.testing.assert_close(
        agreeing_class_loss(logits, half, 0.1, STRENGTH).total, by_torch(x[kept], labels[kept], weight, bias, 0.1)
    )


def first_update(task: str, folder: Path, changes: dict[str, Any]) -> Gradients:
    made = trainer(task, folder, changes)
    work = next(made.loader.updates())
    return made.engine.gradients(work.batches, epoch=0)


@pytest.mark.parametrize("task", FAMILIES)
def test_a_batch_is_shown_twice_and_only_dropout_makes_a_difference(task: str, tmp_path: Path) -> None:
    off = dict.fromkeys(("embedding", "sublayer", "attention", "feedforward"), 0.0)
    names = {"translate": ("encoder", "decoder"), "continue": ("decoder",), "fill": ("encoder",)}[task]
    sure: dict[str, Any] = {f"model.{name}.dropout": off for name in names}
    once, twice, unsure = (
        first_update(task, tmp_path / str(number), changes)
        for number, changes in enumerate((sure, sure | {"train.agreement": 5.0}, {"train.agreement": 500.0}))
    )
    assert twice.tokens == once.tokens
    assert twice.loss == pytest.approx(once.loss, rel=1e-5)
    assert twice.norm == pytest.approx(once.norm, rel=1e-4)
    assert unsure.loss > 1.05 * unsure.negative_log_likelihood
