"""R-Drop: the chunked pass equals torch's own KL divergence, and a run trains with R-Drop."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.batches.arrays import IGNORE_INDEX
from regard.train.engine import UpdateStats
from regard.train.loss import label_vs_rest, token_loss
from regard.train.r_drop import r_drop_class_loss, r_drop_token_loss
from tests.train.factories import make_trainer
from tests.train.runs import TASKS

TOKENS, WIDTH, VOCABULARY, STRENGTH = 37, 8, 50, 5.0


def make_inputs(bias: bool, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    labels = torch.randint(VOCABULARY, (TOKENS,), generator=generator).repeat(2)
    return draw(2 * TOKENS, WIDTH), labels, draw(VOCABULARY, WIDTH), draw(VOCABULARY) if bias else None


def torch_r_drop_loss(x: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, label_smoothing: float) -> Tensor:
    """The paper's formula, halved, in torch's own functions."""
    logits = F.linear(x, weight, bias)  # (2 N, V)
    cross_entropy = F.cross_entropy(logits, labels, label_smoothing=label_smoothing, reduction="sum")
    p, q = logits.log_softmax(dim=-1).chunk(2)
    divergence = sum(
        F.kl_div(log_first, log_second, log_target=True, reduction="sum") for log_first, log_second in ((p, q), (q, p))
    )
    return (cross_entropy + STRENGTH / 2 * divergence) / 2


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 16, 1000])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_the_formula_in_values_and_gradients(bias: bool, label_smoothing: float, rows: int) -> None:
    given = make_inputs(bias)
    leaves = [tensor for tensor in given if tensor is not None and tensor.requires_grad]
    ours = r_drop_token_loss(*given, label_smoothing, rows, STRENGTH)
    theirs = torch_r_drop_loss(*given, label_smoothing)
    torch.testing.assert_close(ours.total, theirs, rtol=1e-10, atol=0)
    for ours_grad, theirs_grad in zip(
        torch.autograd.grad(ours.total * 0.37, leaves), torch.autograd.grad(theirs * 0.37, leaves), strict=True
    ):
        torch.testing.assert_close(ours_grad, theirs_grad, rtol=1e-8, atol=1e-10)


def test_one_row_at_a_time_means_one_pair_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: set[int] = set()

    def record_size(logits: torch.Tensor, *rest: Any) -> Any:
        sizes.add(logits.size(0))
        return label_vs_rest(logits, *rest)

    monkeypatch.setattr("regard.train.r_drop.label_vs_rest", record_size)
    r_drop_token_loss(*make_inputs(False), 0.0, 1, STRENGTH)
    assert sizes == {2}


def test_without_strength_it_is_the_mean_of_both_passes() -> None:
    given = make_inputs(bias=False)
    both, paired = token_loss(*given, 0.1), r_drop_token_loss(*given, 0.1, logit_rows=6, strength=0.0)
    assert paired.correct == both.correct / 2 > 0
    torch.testing.assert_close(paired.total, both.total / 2)
    torch.testing.assert_close(paired.negative_log_likelihood, both.negative_log_likelihood / 2)


def test_two_equal_passes_add_no_divergence() -> None:
    x, labels, weight, bias = make_inputs(bias=True)
    x = x[:TOKENS].repeat(2, 1)
    single = token_loss(x[:TOKENS], labels[:TOKENS], weight, bias, 0.1)
    torch.testing.assert_close(r_drop_token_loss(x, labels, weight, bias, 0.1, 8, STRENGTH).total, single.total)


@pytest.mark.parametrize("rows", [0, 8])
def test_a_batch_without_places_loses_nothing(rows: int) -> None:
    x, labels, weight, bias = make_inputs(bias=True)
    loss = r_drop_token_loss(x[:0], labels[:0], weight, bias, 0.1, rows, STRENGTH)
    assert loss.total == 0
    assert not torch.autograd.grad(loss.total, weight)[0].any()


@pytest.mark.parametrize("rows", [8, 32])  # 74 rows: in chunks of 32, the last 10 are padded
def test_under_autocast_it_is_near_the_exact_figure(rows: int) -> None:
    given = make_inputs(bias=False, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = r_drop_token_loss(*given, 0.1, rows, STRENGTH)
    exact = torch_r_drop_loss(*given, 0.1)
    assert ours.total.dtype == torch.float32
    torch.testing.assert_close(ours.total, exact, rtol=0.02, atol=0)
    for gradient, exact_gradient in zip(
        *(torch.autograd.grad(total, (given[0], given[2])) for total in (ours.total, exact)), strict=True
    ):
        assert (gradient - exact_gradient).norm() < 0.02 * exact_gradient.norm()


def test_r_drop_of_classes_ignores_unlabelled_positions() -> None:
    x, labels, weight, bias = make_inputs(bias=True)
    logits = F.linear(x, weight, bias)
    torch.testing.assert_close(
        r_drop_class_loss(logits, labels, 0.1, STRENGTH).total, torch_r_drop_loss(x, labels, weight, bias, 0.1)
    )
    partial_labels = labels.clone()
    partial_labels[[*range(5), *range(TOKENS, TOKENS + 5)]] = IGNORE_INDEX
    valid = partial_labels != IGNORE_INDEX
    torch.testing.assert_close(
        r_drop_class_loss(logits, partial_labels, 0.1, STRENGTH).total,
        torch_r_drop_loss(x[valid], labels[valid], weight, bias, 0.1),
    )


def compute_first_update(task: str, folder: Path, changes: dict[str, Any]) -> UpdateStats:
    trainer = make_trainer(task, folder, changes)
    update = next(trainer.loader.updates())
    return trainer.updater.compute_gradients(update.batches, epoch=0)


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_is_shown_twice_and_only_dropout_makes_a_difference(task: str, tmp_path: Path) -> None:
    no_dropout = dict.fromkeys(("embedding", "sublayer", "attention", "feedforward"), 0.0)
    names = {"translate": ("encoder", "decoder"), "continue": ("decoder",), "fill": ("encoder",)}[task]
    deterministic: dict[str, Any] = {f"model.{name}.dropout": no_dropout for name in names}
    once, twice, with_dropout = (
        compute_first_update(task, tmp_path / str(number), changes)
        for number, changes in enumerate(
            (deterministic, deterministic | {"train.r_drop": 5.0}, {"train.r_drop": 500.0})
        )
    )
    assert twice.tokens == once.tokens
    assert twice.loss == pytest.approx(once.loss, rel=1e-5)
    assert twice.gradient_norm == pytest.approx(once.gradient_norm, rel=1e-4)
    assert with_dropout.loss > 1.05 * with_dropout.negative_log_likelihood
