"""softmax(scores) v, twice: fused for speed, explicit for every score and for the eye. A test proves them equal."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.nn.masks import Mask
from regard.nn.scores import Score


class ResolvedMask(NamedTuple):
    """What the kernels are told about who sees whom, worked out once for all layers."""

    is_causal: bool  # the lower triangle, said as a hint: nothing dense is built
    allowed: Tensor | None  # (1|B, 1, 1|T, S) True = may look
    bias: Tensor | None  # (1|B, H, T, S) added to the scores
    additive: Tensor | None  # mask and bias in one, as the fused kernel wants them

    def dense(self, queries: int, keys: int, device: torch.device) -> Tensor | None:
        """The mask as a table, also where a hint stands for it."""
        if not self.is_causal:
            return self.allowed
        return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()[None, None]

    def repeat_interleave(self, times: int) -> "ResolvedMask":
        """The same for every row of a batch that is repeated row by row."""
        allowed, bias, additive = (
            part if part is None or part.size(0) == 1 else part.repeat_interleave(times, dim=0)
            for part in (self.allowed, self.bias, self.additive)
        )
        return ResolvedMask(self.is_causal, allowed, bias, additive)


def resolve_mask(
    mask: Mask,
    query_index: Tensor,
    key_index: Tensor,
    *,
    is_square: bool,
    positions: tuple[Tensor, Tensor] | None = None,
    biases: tuple[Tensor, ...] = (),
) -> tuple[ResolvedMask, ...]:
    """The cheapest way to say a mask, once for all layers or once for each bias.

    `fresh`: queries and keys are the same tokens, so "causal" is the lower triangle that the kernel knows.
    `positions` of queries and keys, where they differ from their places in the row.
    """
    if mask.is_at_most_causal and not biases:
        if not mask.causal or (query_index.size(-1) == 1 and query_index.size(0) == 1):
            return (ResolvedMask(False, None, None, None),)  # one new token after all others sees everything
        if is_square:
            return (ResolvedMask(True, None, None, None),)
    allowed = mask.dense(query_index, key_index, *(positions or ()))  # (1|B, 1, 1|T, S)
    if allowed is None:
        return tuple(ResolvedMask(False, None, bias, bias) for bias in biases)
    if not biases:
        zero = torch.zeros((), device=allowed.device)
        return (ResolvedMask(False, allowed, None, torch.where(allowed, zero, float("-inf"))),)
    return tuple(ResolvedMask(False, allowed, bias, torch.where(allowed, bias, float("-inf"))) for bias in biases)


def sdpa(query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, scale: float, dropout: float) -> Tensor:
    """The fast path: (B, H, T, K), (B, G, S, K), (B, G, S, V) -> (B, H, T, V); no weights come to light."""
    additive = None if mask.additive is None else mask.additive.to(query.dtype)
    return F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=additive,
        dropout_p=dropout,
        is_causal=mask.is_causal,
        scale=scale,
        enable_gqa=query.size(1) != key.size(1),
    )


def eager_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, score: Score, dropout: float
) -> tuple[Tensor, Tensor]:
    """The plain path, as the lectures write it: output (B, H, T, V) and the weights (B, H, T, S) behind it."""
    heads_per_group = query.size(1) // key.size(1)
    key = key.repeat_interleave(heads_per_group, dim=1)  # (B, H, S, K)
    value = value.repeat_interleave(heads_per_group, dim=1)  # (B, H, S, V)
    scores = score.scores(query, key)  # (B, H, T, S)
    if mask.bias is not None:
        scores = scores + mask.bias
    allowed = mask.dense(query.size(2), key.size(2), query.device)
    if allowed is not None:
        # The lowest number, not -inf: its exponential is 0 all the same, and a row that sees nobody has gradients.
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    softmax_dtype = torch.promote_types(scores.dtype, torch.float32)
    weights = scores.softmax(dim=-1, dtype=softmax_dtype)  # (B, H, T, S)
    if allowed is not None:  # who sees nobody gets zeros, as in the fused kernel
        weights = weights.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)
    weights = weights.to(value.dtype)  # softmax, and a float32 bias before it, are wider than a narrow model
    return F.dropout(weights, dropout) @ value, weights  # (B, H, T, V)
