"""How wrong a model is: cross-entropy with label smoothing, as sums over places.

Over a large vocabulary the logits are by far the largest tensor of a training step: 4096 places x 32,000 words are half
a gigabyte, and torch keeps three of that size. `word_loss` makes them a few rows at a time and has their gradients
ready before the next rows come: with p = softmax(x W^T + b), the gradient of a place's loss to its logits is

    p - (1 - s) onehot(label) - s / V        s: smoothing, V: words

so nothing of that size is kept for the backward pass, which only multiplies by the gradient that comes from above.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from regard.data.rows import IGNORE_INDEX

FEW = 32  # rows of narrow logits are filled up to multiples of this, so that there are few sizes of them


class WordLoss(NamedTuple):
    """Sums over all places; divide by their number."""

    total: Tensor  # () with label smoothing; has a gradient
    negative_log_likelihood: Tensor  # () without smoothing: what perplexity is made of
    right: Tensor  # () places where the likeliest word (the first, where several are) was the label


def word_loss(
    x: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float = 0.0, rows: int = 0
) -> WordLoss:
    """The loss of vectors (N, D) whose next words are `labels` (N), by the output matrix (V, D) and its bias (V).

    The logits of `rows` places exist at a time; 0 makes all of them in torch's own way, which is the faster one where
    words are few. Under autocast the matrix products run in its type, softmax and sums in float32.

    >>> x, weight = torch.eye(2), torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> loss = word_loss(x, torch.tensor([0, 2]), weight, bias=None, rows=1)
    >>> round(loss.total.item(), 4), loss.right.item()  # log(e^2 + 2) - 2 + log(e + 2)
    (1.791, 1)
    """
    if rows == 0:
        logits = F.linear(x, weight, bias)  # (N, V)
        return _all_at_once(logits, labels, smoothing, scratch=logits.detach())
    return passed(Pass(x, labels, weight, bias, smoothing, rows), x, weight, bias)


def class_loss(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> WordLoss:
    """The loss of logits (..., classes) that are all there; labels (...) may be IGNORED."""
    logits = logits.flatten(0, -2)  # (N, classes)
    return _all_at_once(logits, labels.flatten(), smoothing, scratch=logits.detach().clone())


def passed(one_pass: "Pass", x: Tensor, weight: Tensor, bias: Tensor | None) -> WordLoss:
    """Make a pass; its total has gradients to these, if anybody wants them."""
    if torch.is_grad_enabled() and any(given is not None and given.requires_grad for given in (x, weight, bias)):
        return WordLoss(*_WordLoss.apply(x, weight, bias, one_pass))
    return one_pass.sums()


def _all_at_once(logits: Tensor, labels: Tensor, smoothing: float, scratch: Tensor) -> WordLoss:
    """Logits (N, V) and a `scratch` of the same numbers, which are changed for a moment."""
    logs = logits.log_softmax(dim=-1, dtype=_wide(logits.dtype))  # (N, V)
    likelihood = F.nll_loss(logs, labels, ignore_index=IGNORE_INDEX, reduction="sum")
    real = labels != IGNORE_INDEX  # (N)
    _, _, won = contest(scratch.to(logs.dtype), labels.clamp(min=0)[:, None])
    right = (won[:, 0] & real).sum()
    if not smoothing:
        return WordLoss(likelihood, likelihood.detach(), right)
    uniform = -logs.mean(dim=-1).masked_fill(~real, 0.0).sum()
    return WordLoss((1 - smoothing) * likelihood + smoothing * uniform, likelihood.detach(), right)


class _WordLoss(torch.autograd.Function):
    """The work is done on the way forward, where the logits are; the way back is a multiplication."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, one_pass: "Pass") -> WordLoss:  # noqa: ARG004
        gradients = one_pass.gradients = _Gradients(one_pass, to_weight=ctx.needs_input_grad[1])
        sums = one_pass.sums()
        ctx.save_for_backward(gradients.to_x, gradients.to_weight, gradients.to_bias)
        ctx.mark_non_differentiable(sums.negative_log_likelihood, sums.right)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if gradient is None else gradient * above for gradient in ctx.saved_tensors), None


class Pass:
    """One pass over the logits, some rows at a time. Buffers of their size are made once and written over."""

    def __init__(
        self, x: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float, rows: int
    ) -> None:
        device = x.device.type
        self.narrow = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        self.wide = _wide(self.narrow)
        self.x, self.labels, self.weight, self.bias = x.detach(), labels[:, None], weight, bias
        self.smoothing, self.words, self.rows = smoothing, weight.size(0), min(rows, x.size(0) + -x.size(0) % FEW)
        self.x_sum = self.x.sum(dim=0, dtype=self.wide)  # (D)
        self.weight_sum = weight.detach().sum(dim=0, dtype=self.wide)  # (D)
        self.matrix = weight.detach().to(self.narrow)  # (V, D)
        self.gradients: _Gradients | None = None

    @torch.no_grad()
    def sums(self) -> WordLoss:
        """Go through all rows."""
        log_sums, own = self.x_sum.new_zeros(2)
        right = self.labels.new_zeros(())
        with torch.autocast(self.x.device.type, enabled=False):
            for rows, logits, product in self._logits():
                log_sum, own_logit, hits = self._look(rows, logits, product)
                log_sums, own, right = log_sums + log_sum, own + own_logit, right + hits
            # The sum of all logits of all places, though no two rows were there together.
            logit_sum = self.x_sum @ self.weight_sum
            if self.bias is not None:
                logit_sum = logit_sum + self.x.size(0) * self.bias.sum(dtype=self.wide)
        likelihood = log_sums - own
        uniform = log_sums - logit_sum / self.words
        return WordLoss((1 - self.smoothing) * likelihood + self.smoothing * uniform, likelihood, right)

    def _logits(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Some rows, their logits in the wide type (n, V), and the buffer that the narrow ones came in."""
        bias = None if self.bias is None else self.bias.to(self.narrow)
        wide = self.x.new_empty(self.rows, self.words, dtype=self.wide)
        narrow = wide if self.narrow == self.wide else torch.empty_like(wide, dtype=self.narrow)
        for start in range(0, self.x.size(0), max(self.rows, 1)):
            x = self.x[start : start + self.rows]  # (n, D)
            places = x.size(0)
            x = self.filled(x.to(self.narrow))  # (n or a few more, D)
            logits, product = wide[:places], narrow[: x.size(0)]  # (n, V), (n or a few more, V)
            if bias is None:
                torch.mm(x, self.matrix.t(), out=product)
            else:
                torch.addmm(bias, x, self.matrix.t(), out=product)
            if narrow is not wide:
                logits.copy_(product[:places])
            yield slice(start, start + places), logits, product

    def filled(self, rows: Tensor) -> Tensor:
        """Rows with empty ones behind them, up to one of a few sizes, where a narrow product has a kernel for each."""
        lacking = -rows.size(0) % FEW if self.narrow != self.wide and self.rows % FEW == 0 else 0
        return F.pad(rows, (0, 0, 0, lacking)) if lacking else rows

    def _look(self, rows: slice, logits: Tensor, product: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sums of log sum exp, of the labels' logits, and of hits; the logits are used up."""
        labels = self.labels[rows]  # (n, 1)
        own, others, won = contest(logits, labels)
        peak = torch.maximum(own, others)  # (n, 1)
        exponentials = logits.sub_(peak).exp_()  # (n, V)
        sums = exponentials.sum(dim=1, keepdim=True)  # (n, 1)
        if self.gradients is not None:
            exponentials.scatter_add_(1, labels, (self.smoothing - 1) * sums)
            self.gradients.add(rows, exponentials, sums, product)
        return (peak + sums.log()).sum(), own.sum(), won.sum()


class _Gradients:
    """Of the total, to the vectors, to the matrix (a third of the work; a frozen one is spared it) and to the bias."""

    def __init__(self, one_pass: Pass, to_weight: bool) -> None:
        self.of = one_pass
        places, words = one_pass.x.size(0), one_pass.words
        # What smoothing takes, s / V from every logit, is one vector for all rows: they start with it.
        share = one_pass.smoothing / words
        self.to_x = (-share * one_pass.weight_sum).to(one_pass.x.dtype).repeat(places, 1)  # (N, D)
        self.to_weight = (-share * one_pass.x_sum).repeat(words, 1) if to_weight else None  # (V, D)
        self.to_bias = None if one_pass.bias is None else one_pass.x_sum.new_full((words,), -share * places)  # (V)

    def add(self, rows: slice, unscaled: Tensor, sums: Tensor, product: Tensor) -> None:
        """Rows of gradients to logits (n, V), still to be divided by their sums (n, 1).

        They are divided where rows are short, in D numbers instead of V. Sums reach V, and float16 ends at 65504: there
        the long rows must be divided.
        """
        if product.dtype == torch.float16:
            unscaled, sums = unscaled.div_(sums), torch.ones_like(sums)
        if product.dtype != unscaled.dtype:
            product[: sums.size(0)].copy_(unscaled)  # rounded once, for two products
            product[sums.size(0) :] = 0
        if self.to_weight is not None:
            x = self.of.filled((self.of.x[rows] / sums).to(product.dtype))  # (n or a few more, D)
            if product.dtype == self.to_weight.dtype:
                self.to_weight.addmm_(product.t(), x)
            else:
                self.to_weight.add_(product.t() @ x)
        self.to_x[rows] += (product @ self.of.matrix)[: sums.size(0)] / sums
        if self.to_bias is not None:
            self.to_bias.addmv_(unscaled.t(), 1 / sums[:, 0])


def contest(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The labels' logits, the highest of all others, and whether `argmax` is the label, (n, 1) each.

    The logits (n, V) are changed and put right again: `argmax` itself is ten times slower than `amax`, as slow over a
    large vocabulary as half a matrix product, and needed only where several words share the highest logit.
    """
    own = logits.gather(1, labels)  # (n, 1)
    others = logits.scatter_(1, labels, -math.inf).amax(dim=1, keepdim=True)  # (n, 1)
    logits.scatter_(1, labels, own)
    won = own > others
    tied = (own == others).nonzero()[:, 0]
    won[tied] = logits[tied].argmax(dim=1, keepdim=True) == labels[tied]
    return own, others, won


def _wide(kind: torch.dtype) -> torch.dtype:
    return torch.float64 if kind == torch.float64 else torch.float32
