"""Cross-entropy with label smoothing, as sums over positions; logits can be computed in chunks of rows.

Over a large vocabulary the logits are by far the largest tensor of a training step: 4096 positions x 32,000 tokens are
half a gigabyte, and torch keeps three tensors of that size. `token_loss` computes a few rows at a time, and their
gradients before the next rows: with p = softmax(x W^T + b), the gradient of a position's loss to its logits is

    p - (1 - s) onehot(label) - s / V        s: smoothing, V: vocabulary size

so no tensor of that size is kept for the backward pass, which only multiplies by the incoming gradient.

CPU fast path (`logit_rows` > 0); reference: `logit_rows=0`; proven by: tests/models/loss/test_token.py.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from regard.base.labels import IGNORE_INDEX
from regard.models.loss.sums import LossSums

ROW_MULTIPLE = 32  # low-precision logits are padded to multiples of this many rows: each size compiles a kernel


def token_loss(
    x: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, label_smoothing: float = 0.0, logit_rows: int = 0
) -> LossSums:
    """Compute the cross-entropy of hidden states through the output projection.

    Under autocast the matrix products run in its dtype, softmax and sums in float32.

    Args:
        x: Hidden states (N, D).
        labels: Next tokens (N).
        weight: Output matrix (V, D).
        bias: Output bias (V), or None.
        label_smoothing: Probability mass spread uniformly over the vocabulary.
        logit_rows: Rows of logits in memory at a time; 0 computes all of them with torch's own operators, which is
            faster for a small vocabulary.

    >>> x, weight = torch.eye(2), torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> loss = token_loss(x, torch.tensor([0, 2]), weight, bias=None, logit_rows=1)
    >>> round(loss.total.item(), 4), loss.correct.item()  # log(e^2 + 2) - 2 + log(e + 2)
    (1.791, 1)
    """
    if logit_rows == 0:
        logits = F.linear(x, weight, bias)  # (N, V)
        return _full_logits_loss(logits, labels, label_smoothing, scratch=logits.detach())
    chunked_pass = ChunkedPass(x, labels, weight, bias, label_smoothing, logit_rows)
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in (x, weight, bias)):
        return LossSums(*_ChunkedLoss.apply(x, weight, bias, chunked_pass))
    return chunked_pass.compute()


def class_loss(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> LossSums:
    """Compute the cross-entropy of full logits (..., classes); labels (...) may be IGNORE_INDEX."""
    logits = logits.flatten(0, -2)  # (N, classes)
    return _full_logits_loss(logits, labels.flatten(), label_smoothing, scratch=logits.detach().clone())


def _full_logits_loss(logits: Tensor, labels: Tensor, label_smoothing: float, scratch: Tensor) -> LossSums:
    """Compute the loss of logits (N, V); `scratch`, a tensor with the same values, is changed and restored."""
    logprobs = logits.log_softmax(dim=-1, dtype=_accumulation_dtype(logits.dtype))  # (N, V)
    negative_log_likelihood = F.nll_loss(logprobs, labels, ignore_index=IGNORE_INDEX, reduction="sum")
    valid = labels != IGNORE_INDEX  # (N)
    _, _, is_correct = label_vs_rest(scratch.to(logprobs.dtype), labels.clamp(min=0)[:, None])
    correct = (is_correct[:, 0] & valid).sum()
    if not label_smoothing:
        return LossSums(negative_log_likelihood, negative_log_likelihood.detach(), correct)
    uniform = -logprobs.mean(dim=-1).masked_fill(~valid, 0.0).sum()
    return LossSums(
        (1 - label_smoothing) * negative_log_likelihood + label_smoothing * uniform,
        negative_log_likelihood.detach(),
        correct,
    )


class _ChunkedLoss(torch.autograd.Function):
    """Computes the gradients in the forward pass, where the logits are; backward only multiplies."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, chunked_pass: "ChunkedPass") -> LossSums:  # noqa: ARG004
        gradients = chunked_pass.gradients = _Gradients(chunked_pass, needs_weight_grad=ctx.needs_input_grad[1])
        sums = chunked_pass.compute()
        chunked_pass.gradients = None  # a reference cycle would keep them alive until garbage collection
        ctx.save_for_backward(gradients.grad_x, gradients.grad_weight, gradients.grad_bias)
        ctx.mark_non_differentiable(sums.negative_log_likelihood, sums.correct)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if gradient is None else gradient * grad_output for gradient in ctx.saved_tensors), None


class ChunkedPass:
    """One pass over the logits in chunks of rows. Buffers of a chunk's size are allocated once and reused."""

    def __init__(
        self, x: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, label_smoothing: float, logit_rows: int
    ) -> None:
        device = x.device.type
        self.compute_dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        self.accumulation_dtype = _accumulation_dtype(self.compute_dtype)
        self.x, self.labels, self.weight, self.bias = x.detach(), labels[:, None], weight, bias
        self.label_smoothing, self.vocabulary_size, self.logit_rows = (
            label_smoothing,
            weight.size(0),
            min(logit_rows, x.size(0) + -x.size(0) % ROW_MULTIPLE),
        )
        self.x_sum = self.x.sum(dim=0, dtype=self.accumulation_dtype)  # (D)
        self.weight_sum = weight.detach().sum(dim=0, dtype=self.accumulation_dtype)  # (D)
        self.compute_weight = weight.detach().to(self.compute_dtype)  # (V, D)
        self.gradients: _Gradients | None = None

    @torch.no_grad()
    def compute(self) -> LossSums:
        """Process all rows and return the sums."""
        log_sum_exp, label_logit_sum = self.x_sum.new_zeros(2)
        correct = self.labels.new_zeros(())
        with torch.autocast(self.x.device.type, enabled=False):
            for rows, logits, buffer in self._iter_logits():
                chunk_log_sum_exp, chunk_label_logit_sum, chunk_correct = self._process_rows(rows, logits, buffer)
                log_sum_exp = log_sum_exp + chunk_log_sum_exp
                label_logit_sum = label_logit_sum + chunk_label_logit_sum
                correct = correct + chunk_correct
            # The sum of all logits of all positions, without holding all rows at once.
            logit_sum = self.x_sum @ self.weight_sum
            if self.bias is not None:
                logit_sum = logit_sum + self.x.size(0) * self.bias.sum(dtype=self.accumulation_dtype)
        negative_log_likelihood = log_sum_exp - label_logit_sum
        uniform = log_sum_exp - logit_sum / self.vocabulary_size
        return LossSums(
            (1 - self.label_smoothing) * negative_log_likelihood + self.label_smoothing * uniform,
            negative_log_likelihood,
            correct,
        )

    def _iter_logits(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Iterate over (rows, logits in the accumulation dtype (n, V), buffer in the compute dtype)."""
        bias = None if self.bias is None else self.bias.to(self.compute_dtype)
        full_precision = self.x.new_empty(self.logit_rows, self.vocabulary_size, dtype=self.accumulation_dtype)
        low_precision = (
            full_precision
            if self.compute_dtype == self.accumulation_dtype
            else torch.empty_like(full_precision, dtype=self.compute_dtype)
        )
        for start in range(0, self.x.size(0), max(self.logit_rows, 1)):
            x = self.x[start : start + self.logit_rows]  # (n, D)
            count = x.size(0)
            x = self.pad_rows(x.to(self.compute_dtype))  # (n or a few more, D)
            logits, buffer = full_precision[:count], low_precision[: x.size(0)]  # (n, V), (n or a few more, V)
            if bias is None:
                torch.mm(x, self.compute_weight.t(), out=buffer)
            else:
                torch.addmm(bias, x, self.compute_weight.t(), out=buffer)
            if low_precision is not full_precision:
                logits.copy_(buffer[:count])
            yield slice(start, start + count), logits, buffer

    def pad_rows(self, rows: Tensor) -> Tensor:
        """Append zero rows up to a multiple of ROW_MULTIPLE: low-precision products compile a kernel per size."""
        missing = (
            -rows.size(0) % ROW_MULTIPLE
            if self.compute_dtype != self.accumulation_dtype and self.logit_rows % ROW_MULTIPLE == 0
            else 0
        )
        return F.pad(rows, (0, 0, 0, missing)) if missing else rows

    def _process_rows(self, rows: slice, logits: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the sums of log-sum-exp, of the labels' logits and of correct rows; overwrites the logits."""
        labels = self.labels[rows]  # (n, 1)
        label_logits, max_other_logits, is_correct = label_vs_rest(logits, labels)
        max_logits = torch.maximum(label_logits, max_other_logits)  # (n, 1)
        exponentials = logits.sub_(max_logits).exp_()  # (n, V)
        sums = exponentials.sum(dim=1, keepdim=True)  # (n, 1)
        if self.gradients is not None:
            exponentials.scatter_add_(1, labels, (self.label_smoothing - 1) * sums)
            self.gradients.add(rows, exponentials, sums, buffer)
        return (max_logits + sums.log()).sum(), label_logits.sum(), is_correct.sum()


class _Gradients:
    """Gradients of the total to `x`, to the output matrix (a third of the work; skipped if frozen) and to the bias."""

    def __init__(self, chunked_pass: ChunkedPass, needs_weight_grad: bool) -> None:
        self.chunked_pass = chunked_pass
        count, vocabulary_size = chunked_pass.x.size(0), chunked_pass.vocabulary_size
        # Smoothing subtracts s / V from the gradient of every logit, in all rows: the sums start with this share.
        share = chunked_pass.label_smoothing / vocabulary_size
        self.grad_x = (-share * chunked_pass.weight_sum).to(chunked_pass.x.dtype).repeat(count, 1)  # (N, D)
        self.grad_weight = (
            (-share * chunked_pass.x_sum).repeat(vocabulary_size, 1) if needs_weight_grad else None
        )  # (V, D)
        self.grad_bias = (
            None if chunked_pass.bias is None else chunked_pass.x_sum.new_full((vocabulary_size,), -share * count)
        )  # (V)

    def add(self, rows: slice, unscaled: Tensor, sums: Tensor, buffer: Tensor) -> None:
        """Add the gradients of some rows, given unnormalized gradients to logits (n, V) and their sums (n, 1).

        Dividing rows of D values by the sums is cheaper than dividing rows of V values. The sums can reach V, which may
        exceed float16's maximum of 65504, so in float16 the rows of V values are divided instead.
        """
        if buffer.dtype == torch.float16:
            unscaled, sums = unscaled.div_(sums), torch.ones_like(sums)
        if buffer.dtype != unscaled.dtype:
            buffer[: sums.size(0)].copy_(unscaled)  # rounded once, for two products
            buffer[sums.size(0) :] = 0
        if self.grad_weight is not None:
            x = self.chunked_pass.pad_rows((self.chunked_pass.x[rows] / sums).to(buffer.dtype))  # (n or a few more, D)
            if buffer.dtype == self.grad_weight.dtype:
                self.grad_weight.addmm_(buffer.t(), x)
            else:
                self.grad_weight.add_(buffer.t() @ x)
        self.grad_x[rows] += (buffer @ self.chunked_pass.compute_weight)[: sums.size(0)] / sums
        if self.grad_bias is not None:
            self.grad_bias.addmv_(unscaled.t(), 1 / sums[:, 0])


def label_vs_rest(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the labels' logits, the highest of all other logits, and whether `argmax` is the label, (n, 1) each.

    The logits (n, V) are changed and restored: `argmax` itself is ten times slower than `amax`, as slow over a large
    vocabulary as half a matrix product, and needed only where several tokens share the highest logit.
    """
    label_logits = logits.gather(1, labels)  # (n, 1)
    max_other_logits = logits.scatter_(1, labels, -math.inf).amax(dim=1, keepdim=True)  # (n, 1)
    logits.scatter_(1, labels, label_logits)
    is_correct = label_logits > max_other_logits
    tied_rows = (label_logits == max_other_logits).nonzero()[:, 0]
    is_correct[tied_rows] = logits[tied_rows].argmax(dim=1, keepdim=True) == labels[tied_rows]
    return label_logits, max_other_logits, is_correct


def _accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
