"""R-drop (Liang et al. 2021): two passes of a sample, with other dropout, are asked to give the same answer.

Of every place there are two sets of logits, with probabilities p and q. Besides what both lose by their label, they
lose by how far apart they are:

    (loss(p) + loss(q)) / 2  +  strength / 4 x (KL(p || q) + KL(q || p))

which is half of the paper's formula, so that the figure can be compared with a loss without it. A model that depends on
none of its parts in particular can do this; one that learned a small corpus by heart cannot. With d = log p - log q the
gradient of both divergences to the logits of p is

    p (d - KL(p || q)) + p - q

and the same with changed roles for q: the fused pass of `loss` needs no more than a few rows of logits here too.
"""

import torch
from torch import Tensor

from regard.data.rows import IGNORE_INDEX
from regard.train.loss import Pass, WordLoss, class_loss, contest, passed


def agreeing_word_loss(
    x: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float, rows: int, strength: float
) -> WordLoss:
    """`loss.word_loss` of vectors (2 N, D), where place i and place N + i are the same one in two passes."""
    x, labels = _paired(x), _paired(labels)
    rows = max(2, 2 * (rows // 2) if rows else x.size(0))  # both of a pair are there together
    return _halved(passed(_AgreeingPass(x, labels, weight, bias, smoothing, rows, strength), x, weight, bias))


def agreeing_class_loss(logits: Tensor, labels: Tensor, smoothing: float, strength: float) -> WordLoss:
    """`loss.class_loss` of logits (2 N, classes) in the same order; labels (2 N) may be IGNORED."""
    found = class_loss(logits, labels, smoothing)
    first, second = logits.log_softmax(dim=-1).chunk(2)  # (N, classes)
    real = labels.chunk(2)[0] != IGNORE_INDEX  # (N)
    apart = ((first.exp() - second.exp()) * (first - second)).sum(dim=-1)[real].sum()
    return _halved(found._replace(total=found.total + strength / 2 * apart))


def _paired(rows: Tensor) -> Tensor:
    """(2 N, ...) with the second pass after the first -> (2 N, ...) with both of a place side by side."""
    return rows.unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1)


def _halved(found: WordLoss) -> WordLoss:
    return WordLoss(found.total / 2, found.negative_log_likelihood / 2, found.right / 2)


class _AgreeingPass(Pass):
    """Rows 2 i and 2 i + 1 are a pair."""

    def __init__(
        self,
        x: Tensor,
        labels: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        smoothing: float,
        rows: int,
        strength: float,
    ) -> None:
        super().__init__(x, labels, weight, bias, smoothing, rows)
        self.half = strength / 2
        self.apart = self.x_sum.new_zeros(())

    def sums(self) -> WordLoss:
        """Go through all rows."""
        found = super().sums()
        return found._replace(total=found.total + self.half * self.apart)

    def _look(self, rows: slice, logits: Tensor, product: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        labels = self.labels[rows]  # (n, 1)
        own, _, won = contest(logits, labels)
        log_sum = logits.logsumexp(dim=1, keepdim=True)  # (n, 1)
        logs = logits.sub_(log_sum)  # (n, V)
        chances = logs.exp()  # (n, V)
        p, q = chances.unflatten(0, (-1, 2)).unbind(1)  # (n / 2, V) each
        log_p, log_q = logs.unflatten(0, (-1, 2)).unbind(1)
        distance = log_p - log_q  # (n / 2, V)
        from_p = torch.linalg.vecdot(p, distance)[:, None]  # (n / 2, 1) KL(p || q)
        from_q = -torch.linalg.vecdot(q, distance)[:, None]
        self.apart = self.apart + from_p.sum() + from_q.sum()
        if self.gradients is not None:
            # Over the logs, which are not needed any more: p (1 + half (1 + d - KL)) - half q
            one = self.half + 1
            torch.addcmul(-self.half * q, p, (self.half * distance).add_(one - self.half * from_p), out=log_p)
            torch.addcmul(-self.half * p, q, (-self.half * distance).add_(one - self.half * from_q), out=log_q)
            logs.scatter_add_(1, labels, (self.smoothing - 1) * torch.ones_like(own))
            self.gradients.add(rows, logs, torch.ones_like(own), product)
        return log_sum.sum(), own.sum(), won.sum()
