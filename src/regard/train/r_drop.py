"""R-Drop (Liang et al. 2021): two passes with different dropout should predict the same distribution.

Every position has two sets of logits, with probabilities p and q. The loss is their mean cross-entropy plus a
symmetric KL divergence:

    (loss(p) + loss(q)) / 2  +  strength / 4 x (KL(p || q) + KL(q || p))

which is half of the paper's formula, so that the value can be compared with a loss without R-Drop. It regularizes: a
model that overfits a small corpus disagrees with itself under dropout. With d = log p - log q the gradient of both
divergences to the logits of p is

    p (d - KL(p || q)) + p - q

and the same with exchanged roles for q: as in `loss`, a chunked pass needs only a few rows of logits at a time.
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
    """Compute `loss.token_loss` with R-Drop for x (2 N, D), where rows i and N + i are two passes of one position."""
    x, labels = _interleave_pairs(x), _interleave_pairs(labels)
    logit_rows = max(2, 2 * (logit_rows // 2) if logit_rows else x.size(0))  # both rows of a pair are in one chunk
    return _halve(run_pass(_RDropPass(x, labels, weight, bias, label_smoothing, logit_rows, strength), x, weight, bias))


def r_drop_class_loss(logits: Tensor, labels: Tensor, label_smoothing: float, strength: float) -> LossSums:
    """Compute `loss.class_loss` with R-Drop for logits (2 N, classes); labels (2 N) may be IGNORE_INDEX."""
    loss = class_loss(logits, labels, label_smoothing)
    log_p, log_q = logits.log_softmax(dim=-1).chunk(2)  # (N, classes)
    valid = labels.chunk(2)[0] != IGNORE_INDEX  # (N)
    divergence = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(dim=-1)[valid].sum()
    return _halve(loss._replace(total=loss.total + strength / 2 * divergence))


def _interleave_pairs(rows: Tensor) -> Tensor:
    """Reorder (2 N, ...) from pass after pass to both passes of a position side by side."""
    return rows.unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1)


def _halve(loss: LossSums) -> LossSums:
    return LossSums(loss.total / 2, loss.negative_log_likelihood / 2, loss.correct / 2)


class _RDropPass(ChunkedPass):
    """A chunked pass in which rows 2 i and 2 i + 1 are a pair."""

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
        """Process all rows and return the sums."""
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
            # Overwrites the logprobs, which are no longer needed: p (1 + half (1 + d - KL)) - half q
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
