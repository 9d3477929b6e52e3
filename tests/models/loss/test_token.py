"""The loss equals torch's own: value, gradients and accuracy, for any number of rows and in low precision."""

from collections.abc import Callable
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.base.labels import IGNORE_INDEX
from regard.models.loss import token as module
from regard.models.loss.sums import LossSums
from regard.models.loss.token import class_loss, token_loss

TOKENS, WIDTH, VOCABULARY = 61, 16, 97
ROWS = [0, 1, 7, 61, 1000]


def make_inputs(
    bias: bool, dtype: torch.dtype = torch.float32, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype).requires_grad_()

    labels = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    return draw(TOKENS, WIDTH), labels, draw(VOCABULARY, WIDTH), draw(VOCABULARY) if bias else None


def torch_loss(
    x: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, label_smoothing: float, _: int = 0
) -> LossSums:
    logits = F.linear(x, weight, bias)
    with torch.autocast("cpu", enabled=False):
        logits = logits if logits.dtype == torch.float64 else logits.float()
        total = F.cross_entropy(logits, labels, label_smoothing=label_smoothing, reduction="sum")
        unsmoothed = F.cross_entropy(logits.detach(), labels, reduction="sum")
    return LossSums(total, unsmoothed, (logits.argmax(dim=1) == labels).sum())


def compute_gradients(
    loss_function: Callable[..., LossSums],
    inputs: tuple[Tensor, Tensor, Tensor, Tensor | None],
    label_smoothing: float,
    rows: int = 0,
    scale: float = 1.0,
) -> tuple[LossSums, list[Tensor]]:
    loss = loss_function(*inputs, label_smoothing, rows)
    leaves = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
    return loss, list(torch.autograd.grad(loss.total * scale, leaves))


def relative_error(actual: Tensor, exact: Tensor) -> float:
    return float((actual.double() - exact.double()).norm() / exact.double().norm())


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_torch_in_values_hits_and_gradients(bias: bool, label_smoothing: float, rows: int) -> None:
    given = make_inputs(bias)
    ours, our_gradients = compute_gradients(token_loss, given, label_smoothing, rows, scale=0.37)
    theirs, their_gradients = compute_gradients(torch_loss, given, label_smoothing, scale=0.37)
    torch.testing.assert_close(ours.total, theirs.total, rtol=1e-6, atol=0)
    torch.testing.assert_close(ours.negative_log_likelihood, theirs.negative_log_likelihood, rtol=1e-6, atol=0)
    assert ours.correct == theirs.correct > 0
    assert not ours.negative_log_likelihood.requires_grad
    assert len(our_gradients) == 2 + bias
    for ours_grad, theirs_grad in zip(our_gradients, their_gradients, strict=True):
        assert ours_grad.dtype == theirs_grad.dtype
        assert relative_error(ours_grad, theirs_grad) < 1e-6


@pytest.mark.parametrize("rows", [0, 20])
def test_without_gradients_there_are_only_sums(rows: int) -> None:
    given = make_inputs(bias=True)
    with torch.no_grad():
        without_grad = token_loss(*given, 0.1, rows)
    assert not without_grad.total.requires_grad
    with_grad = token_loss(*given, 0.1, rows)
    assert [value.item() for value in without_grad[:3]] == [value.item() for value in with_grad[:3]]
    with mock.patch.object(module, "_Gradients", side_effect=AssertionError), torch.no_grad():
        token_loss(*given, 0.1, rows)  # computes no gradients


def test_only_some_inputs_may_learn() -> None:
    x, labels, weight, bias = make_inputs(bias=True)
    assert bias is not None
    _, all_grads = compute_gradients(token_loss, (x, labels, weight, bias), 0.1, rows=9)
    for index in range(3):
        parts = [part.detach().requires_grad_(index == number) for number, part in enumerate((x, weight, bias))]
        _, (grad,) = compute_gradients(token_loss, (parts[0], labels, parts[1], parts[2]), 0.1, rows=9)
        assert torch.equal(grad, all_grads[index])


def test_backward_twice_and_accumulated() -> None:
    x, labels, weight, _ = make_inputs(bias=False)
    total = token_loss(x, labels, weight, None, 0.1, logit_rows=8).total
    (total * 2).backward(retain_graph=True)
    assert x.grad is not None
    assert weight.grad is not None
    first = x.grad.clone(), weight.grad.clone()
    (total * 2).backward()
    assert torch.equal(x.grad, 2 * first[0])
    assert torch.equal(weight.grad, 2 * first[1])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_gradcheck(bias: bool, label_smoothing: float) -> None:
    generator = torch.Generator().manual_seed(3)
    x, weight, offset = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((5, 3), (7, 3), (7,))
    )
    labels = torch.randint(7, (5,), generator=generator)

    def total(x: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
        return token_loss(x, labels, weight, offset if bias else None, label_smoothing, logit_rows=2).total * 1.5

    if bias:
        assert torch.autograd.gradcheck(total, (x, weight, offset))
    else:
        assert torch.autograd.gradcheck(lambda x, weight: total(x, weight, offset), (x, weight))


@pytest.mark.parametrize("rows", [0, 4])
def test_of_no_places_the_loss_is_zero_and_so_are_the_gradients(rows: int) -> None:
    _, _, weight, bias = make_inputs(bias=True)
    x = torch.empty(0, WIDTH, requires_grad=True)
    given = (x, torch.empty(0, dtype=torch.int64), weight, bias)
    loss, grads = compute_gradients(token_loss, given, 0.1, rows)
    assert [value.item() for value in loss[:3]] == [0, 0, 0]
    assert grads[0].shape == (0, WIDTH)
    assert not grads[1].any()
    assert not grads[2].any()


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_where_tokens_are_equally_likely_the_first_one_counts(rows: int) -> None:
    weight = torch.tensor([[0.0], [1.0], [1.0], [1.0]])
    labels = torch.tensor([0, 1, 2, 3, 0])
    x = torch.tensor([[1.0], [1.0], [1.0], [1.0], [0.0]])
    assert (
        token_loss(x, labels, weight, None, 0.0, rows).correct.item() == 2
    )  # label 1, and label 0 where all are equal
    assert token_loss(x * -1, labels, weight, None, 0.0, rows).correct.item() == 2  # label 0, twice


@pytest.mark.parametrize("rows", [0, 2])
def test_far_apart_logits_stay_finite(rows: int) -> None:
    weight = torch.tensor([[300.0], [-300.0], [0.0]])
    x = torch.ones(3, 1, requires_grad=True)
    loss, (grad,) = compute_gradients(token_loss, (x, torch.arange(3), weight, None), 0.0, rows)
    assert loss.total.item() == 900.0  # 0 + 600 + 300
    assert grad[:, 0].tolist() == [0.0, 600.0, 300.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [16, 32])  # 61 positions: in chunks of 32, the last 29 rows are padded
def test_under_autocast_products_are_low_precision_and_the_rest_is_float32(
    rows: int, bias: bool, dtype: torch.dtype
) -> None:
    given = make_inputs(bias)
    with torch.autocast("cpu", dtype=dtype):
        ours, our_gradients = compute_gradients(token_loss, given, 0.1, rows)
        unchunked, unchunked_gradients = compute_gradients(token_loss, given, 0.1, rows=0)
        theirs, their_gradients = compute_gradients(torch_loss, given, 0.1)
    for loss in (ours, unchunked):
        assert loss.total.dtype == torch.float32
        torch.testing.assert_close(loss.total, theirs.total, rtol=1e-4, atol=0)
        torch.testing.assert_close(loss.negative_log_likelihood, theirs.negative_log_likelihood, rtol=1e-6, atol=0)
        assert loss.correct == theirs.correct
    _, exact = compute_gradients(torch_loss, make_inputs(bias, torch.float64), 0.1)
    for ours_grad, unchunked_grad, theirs_grad, exact_grad in zip(
        our_gradients, unchunked_gradients, their_gradients, exact, strict=True
    ):
        assert ours_grad.dtype == unchunked_grad.dtype == torch.float32
        assert relative_error(ours_grad, exact_grad) < 1.5 * relative_error(theirs_grad, exact_grad) < 0.02
    low_precision_error = relative_error(
        ours.total.detach(), torch_loss(*make_inputs(bias, torch.float64), 0.1).total.detach()
    )
    assert 1e-7 < low_precision_error < 1e-2  # the logits were computed in low precision


def test_low_precision_products_have_few_sizes() -> None:
    x, labels, weight, _ = make_inputs(bias=False)
    sizes = set()
    torch_mm = torch.mm

    def record_mm(*tensors: Tensor, out: Tensor) -> Tensor:
        sizes.add(out.size(0))
        return torch_mm(*tensors, out=out)

    with torch.autocast("cpu", dtype=torch.bfloat16), mock.patch.object(torch, "mm", record_mm):
        for count in range(33, TOKENS):
            token_loss(x[:count], labels[:count], weight, None, 0.1, logit_rows=32)
    assert sizes == {32}


def test_a_sure_model_has_small_gradients_under_autocast() -> None:
    """p - 1 is rounded after the subtraction: a nearly certain, correct prediction has a gradient near zero."""
    inputs = torch.eye(8) * 12, torch.arange(8), torch.eye(8).requires_grad_(), None
    _, (exact,) = compute_gradients(torch_loss, inputs, 0.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, (grad,) = compute_gradients(token_loss, inputs, 0.0, rows=3)
    assert exact.abs().max() < 1e-3
    assert relative_error(grad, exact) < 0.01


def test_float16_has_room_for_the_sum_of_a_large_vocabulary() -> None:
    vocabulary_size = 70_000
    x, weight = torch.zeros(2, 2, requires_grad=True), torch.ones(vocabulary_size, 2)
    weight[1] = 3.0
    with torch.autocast("cpu", dtype=torch.float16):
        loss, (grad,) = compute_gradients(token_loss, (x, torch.tensor([0, 1]), weight, None), 0.0, rows=2)
    assert loss.total.item() == pytest.approx(2 * torch.tensor(vocabulary_size).log().item())
    torch.testing.assert_close(grad, torch.tensor([[0.0, 0.0], [-2.0, -2.0]]), atol=2e-3, rtol=0)


@pytest.mark.parametrize("rows", [0, 9])
def test_a_bfloat16_model_has_bfloat16_gradients_and_a_float32_loss(rows: int) -> None:
    given = make_inputs(bias=True, dtype=torch.bfloat16)
    loss, grads = compute_gradients(token_loss, given, 0.1, rows)
    assert loss.total.dtype == torch.float32
    assert {grad.dtype for grad in grads} == {torch.bfloat16}


def test_the_logits_never_exist_all_at_once() -> None:
    given = make_inputs(bias=False)
    sizes = []
    torch_mm = torch.mm

    def record_mm(*tensors: Tensor, out: Tensor) -> Tensor:
        sizes.append(tuple(out.shape))
        return torch_mm(*tensors, out=out)

    with mock.patch.object(torch, "mm", record_mm):
        token_loss(*given, 0.1, logit_rows=20)
    assert sizes == [(20, VOCABULARY), (20, VOCABULARY), (20, VOCABULARY), (1, VOCABULARY)]


@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
@pytest.mark.parametrize("shape", [(6,), (3, 4)])
def test_classes_and_tags_against_torch(shape: tuple[int, ...], label_smoothing: float) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(*shape, 5, generator=generator, requires_grad=True)
    labels = torch.randint(5, shape, generator=generator)
    labels.view(-1)[::3] = IGNORE_INDEX
    before = logits.detach().clone()
    ours = class_loss(logits, labels, label_smoothing)
    theirs = F.cross_entropy(logits.view(-1, 5), labels.view(-1), label_smoothing=label_smoothing, reduction="sum")
    torch.testing.assert_close(ours.total, theirs, rtol=1e-6, atol=0)
    unsmoothed = F.cross_entropy(logits.view(-1, 5), labels.view(-1), reduction="sum")
    torch.testing.assert_close(ours.negative_log_likelihood, unsmoothed.detach(), rtol=1e-6, atol=0)
    assert ours.correct == (logits.argmax(-1) == labels).sum()
    ours_grad, theirs_grad = (torch.autograd.grad(total, logits)[0] for total in (ours.total, theirs))
    assert relative_error(ours_grad, theirs_grad) < 1e-6
    assert torch.equal(logits, before)


def test_where_all_labels_are_ignored_nothing_is_learned() -> None:
    logits = torch.randn(3, 4, requires_grad=True)
    loss = class_loss(logits, torch.full((3,), IGNORE_INDEX), label_smoothing=0.1)
    assert [value.item() for value in loss[:3]] == [0, 0, 0]
    assert not torch.autograd.grad(loss.total, logits)[0].any()
