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

from regard.data.batches.arrays import IGNORE_INDEX
from regard.train.loss import ChunkedPass, LossSums, class_loss, label_vs_rest, run_pass


def r_drop_token_loss(
    x: Tensor,
    labels: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    label_smoothing: float,
    logit_rows: int,
    strength: float,
) -> LossSums:
    """`loss.word_loss` of vectors (2 N, D), where place i and place N + i are the same one in two passes."""
    x, labels = _interleave_pairs(x), _interleave_pairs(labels)
    logit_rows = max(2, 2 * (logit_rows // 2) if logit_rows else x.size(0))  # both of a pair are there together
    return _halve(run_pass(_RDropPass(x, labels, weight, bias, label_smoothing, logit_rows, strength), x, weight, bias))


def r_drop_class_loss(logits: Tensor, labels: Tensor, label_smoothing: float, strength: float) -> LossSums:
    """`loss.class_loss` of logits (2 N, classes) in the same order; labels (2 N) may be IGNORED."""
    loss = class_loss(logits, labels, label_smoothing)
    log_p, log_q = logits.log_softmax(dim=-1).chunk(2)  # (N, classes)
    valid = labels.chunk(2)[0] != IGNORE_INDEX  # (N)
    divergence = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(dim=-1)[valid].sum()
    return _halve(loss._replace(total=loss.total + strength / 2 * divergence))


def _interleave_pairs(rows: Tensor) -> Tensor:
    """(2 N, ...) with the second pass after the first -> (2 N, ...) with both of a place side by side."""
    return rows.unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1)


def _halve(loss: LossSums) -> LossSums:
    return LossSums(loss.total / 2, loss.negative_log_likelihood / 2, loss.correct / 2)


class _RDropPass(ChunkedPass):
    """Rows 2 i and 2 i + 1 are a pair."""

    def __init__(
        self,
        x: Tensor,
        labels: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        label_smoothing: float,
        logit_rows: int,
        strength: float,
    ) -> None:
        super().__init__(x, labels, weight, bias, label_smoothing, logit_rows)
        self.half_strength = strength / 2
        self.divergence = self.x_sum.new_zeros(())

    def compute(self) -> LossSums:
        """Go through all rows."""
        loss = super().compute()
        return loss._replace(total=loss.total + self.half_strength * self.divergence)

    def _process_rows(self, rows: slice, logits: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        labels = self.labels[rows]  # (n, 1)
        label_logits, _, is_correct = label_vs_rest(logits, labels)
        log_sum = logits.logsumexp(dim=1, keepdim=True)  # (n, 1)
        logprobs = logits.sub_(log_sum)  # (n, V)
        probabilities = logprobs.exp()  # (n, V)
        p, q = probabilities.unflatten(0, (-1, 2)).unbind(1)  # (n / 2, V) each
        log_p, log_q = logprobs.unflatten(0, (-1, 2)).unbind(1)
        log_ratio = log_p - log_q  # (n / 2, V)
        kl_p_q = torch.linalg.vecdot(p, log_ratio)[:, None]  # (n / 2, 1) KL(p || q)
        kl_q_p = -torch.linalg.vecdot(q, log_ratio)[:, None]
        self.divergence = self.divergence + kl_p_q.sum() + kl_q_p.sum()
        if self.gradients is not None:
            # Over the logs, which are not needed any more: p (1 + half (1 + d - KL)) - half q
            scale = self.half_strength + 1
            torch.addcmul(
                -self.half_strength * q,
                p,
                (self.half_strength * log_ratio).add_(scale - self.half_strength * kl_p_q),
                out=log_p,
            )
            torch.addcmul(
                -self.half_strength * p,
                q,
                (-self.half_strength * log_ratio).add_(scale - self.half_strength * kl_q_p),
                out=log_q,
            )
            logprobs.scatter_add_(1, labels, (self.label_smoothing - 1) * torch.ones_like(label_logits))
            self.gradients.add(rows, logprobs, torch.ones_like(label_logits), buffer)
        return log_sum.sum(), label_logits.sum(), is_correct.sum()
