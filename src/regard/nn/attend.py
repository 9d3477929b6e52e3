"""softmax(scores) v, twice: fused for speed, explicit for every score and for the eye. A test proves them equal."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.nn.masks import Mask
from regard.nn.scores import Score


class Sight(NamedTuple):
    """What the kernels are told about who sees whom, worked out once for all layers."""

    causal: bool  # the lower triangle, said as a hint: nothing dense is built
    mask: Tensor | None  # (1|B, 1, 1|T, S) True = may look
    bias: Tensor | None  # (1|B, H, T, S) added to the scores
    additive: Tensor | None  # mask and bias in one, as the fused kernel wants them

    def dense(self, queries: int, keys: int, device: torch.device) -> Tensor | None:
        """The mask as a table, also where a hint stands for it."""
        if not self.causal:
            return self.mask
        return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()[None, None]

    def repeated(self, times: int) -> "Sight":
        """The same for every row of a batch that is repeated row by row."""
        mask, bias, additive = (
            part if part is None or part.size(0) == 1 else part.repeat_interleave(times, dim=0)
            for part in (self.mask, self.bias, self.additive)
        )
        return Sight(self.causal, mask, bias, additive)


def sights(
    mask: Mask,
    query_index: Tensor,
    key_index: Tensor,
    *,
    fresh: bool,
    positions: tuple[Tensor, Tensor] | None = None,
    biases: tuple[Tensor, ...] = (),
) -> tuple[Sight, ...]:
    """The cheapest way to say a mask, once for all layers or once for each bias.

    `fresh`: queries and keys are the same tokens, so "causal" is the lower triangle that the kernel knows.
    `positions` of queries and keys, where they differ from their places in the row.
    """
    if mask.is_at_most_causal and not biases:
        if not mask.causal or (query_index.size(-1) == 1 and query_index.size(0) == 1):
            return (Sight(False, None, None, None),)  # one new token after all others sees everything
        if fresh:
            return (Sight(True, None, None, None),)
    table = mask.dense(query_index, key_index, *(positions or ()))  # (1|B, 1, 1|T, S)
    if table is None:
        return tuple(Sight(False, None, bias, bias) for bias in biases)
    if not biases:
        zero = torch.zeros((), device=table.device)
        return (Sight(False, table, None, torch.where(table, zero, float("-inf"))),)
    return tuple(Sight(False, table, bias, torch.where(table, bias, float("-inf"))) for bias in biases)


def fused(query: Tensor, key: Tensor, value: Tensor, seen: Sight, scale: float, dropout: float) -> Tensor:
    """The fast path: (B, H, T, K), (B, G, S, K), (B, G, S, V) -> (B, H, T, V); no weights come to light."""
    additive = None if seen.additive is None else seen.additive.to(query.dtype)
    return F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=additive,
        dropout_p=dropout,
        is_causal=seen.causal,
        scale=scale,
        enable_gqa=query.size(1) != key.size(1),
    )


def explicit(
    query: Tensor, key: Tensor, value: Tensor, seen: Sight, score: Score, dropout: float
) -> tuple[Tensor, Tensor]:
    """The plain path, as the lectures write it: output (B, H, T, V) and the weights (B, H, T, S) behind it."""
    groups = query.size(1) // key.size(1)
    key = key.repeat_interleave(groups, dim=1)  # (B, H, S, K)
    value = value.repeat_interleave(groups, dim=1)  # (B, H, S, V)
    scores = score.pairs(query, key)  # (B, H, T, S)
    if seen.bias is not None:
        scores = scores + seen.bias
    mask = seen.dense(query.size(2), key.size(2), query.device)
    if mask is not None:
        # The lowest number, not -inf: its exponential is 0 all the same, and a row that sees nobody has gradients.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    wide = torch.promote_types(scores.dtype, torch.float32)
    weights = scores.softmax(dim=-1, dtype=wide)  # (B, H, T, S)
    if mask is not None:  # who sees nobody gets zeros, as in the fused kernel
        weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    weights = weights.to(value.dtype)  # softmax, and a float32 bias before it, are wider than a narrow model
    return F.dropout(weights, dropout) @ value, weights  # (B, H, T, V)
