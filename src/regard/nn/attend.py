"""softmax(scores) v, implemented twice: fused (`sdpa`) and eager (any score, returns the weights).

tests/matrix checks that they are equal.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.nn.masks import Mask
from regard.nn.scores import ScoreFunction


class ResolvedMask(NamedTuple):
    """A mask in the form the kernels accept, computed once for all layers."""

    is_causal: bool  # lower triangle: the kernel needs no dense mask
    allowed: Tensor | None  # (1|B, 1, 1|T, S) True = may attend
    bias: Tensor | None  # (1|B, H, T, S) added to the scores
    additive: Tensor | None  # mask and bias in one tensor, for the fused kernel
    terms: Mask | None = None  # the description that it was resolved from, for a record

    def dense(self, queries: int, keys: int, device: torch.device) -> Tensor | None:
        """Return the dense mask, including for `is_causal`; None if nothing is masked."""
        if not self.is_causal:
            return self.allowed
        return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()[None, None]

    def repeat_interleave(self, times: int) -> "ResolvedMask":
        """Return the mask with every batch row repeated `times` times."""
        allowed, bias, additive = (
            part if part is None or part.size(0) == 1 else part.repeat_interleave(times, dim=0)
            for part in (self.allowed, self.bias, self.additive)
        )
        return ResolvedMask(self.is_causal, allowed, bias, additive, self.terms)

    def select(self, heads: Tensor, rows: Tensor, keys: int) -> "ResolvedMask":
        """Return the mask for selected heads (h) and query rows (t), without building the full dense mask."""
        allowed, bias = self.allowed, self.bias
        if self.is_causal:
            allowed = (rows[:, None] >= torch.arange(keys, device=rows.device))[None, None]  # (1, 1, t, S)
        elif allowed is not None and allowed.size(2) > 1:
            allowed = allowed[:, :, rows]  # (1|B, 1, t, S)
        if bias is not None:
            bias = bias[:, heads][:, :, rows]  # (1|B, h, t, S)
        return ResolvedMask(False, allowed, bias, None, self.terms)


def resolve_mask(
    mask: Mask,
    query_index: Tensor,
    key_index: Tensor,
    *,
    is_square: bool,
    positions: tuple[Tensor, Tensor] | None = None,
    bias: Tensor | None = None,
) -> ResolvedMask:
    """Resolve a mask into its cheapest form for the kernels.

    Args:
        mask: Which queries may attend to which keys.
        query_index: Index of each query in its row, (1|B, T).
        key_index: Index of each key in its row, (1, S).
        is_square: Whether queries and keys are the same tokens, so that "causal" is the kernel's lower triangle.
        positions: Positions of queries and keys, where they differ from the indices.
        bias: Bias on the scores, (1|B, H, T, S).
    """
    if mask.is_at_most_causal and bias is None:
        if not mask.causal or (query_index.size(-1) == 1 and query_index.size(0) == 1):
            return ResolvedMask(False, None, None, None, mask)  # one new token at the end attends to everything
        if is_square:
            return ResolvedMask(True, None, None, None, mask)
    allowed = mask.dense(query_index, key_index, *(positions or ()))  # (1|B, 1, 1|T, S)
    if allowed is None:
        return ResolvedMask(False, None, bias, bias, mask)
    shown = torch.zeros((), device=allowed.device) if bias is None else bias
    return ResolvedMask(False, allowed, bias, torch.where(allowed, shown, float("-inf")), mask)


def sdpa(query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, scale: float, dropout: float) -> Tensor:
    """Fused attention (PyTorch SDPA): (B, H, T, K), (B, G, S, K), (B, G, S, V) -> (B, H, T, V); returns no weights."""
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
    query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, score: ScoreFunction, dropout: float
) -> tuple[Tensor, Tensor]:
    """Attention step by step (Vaswani et al. 2017); returns output (B, H, T, V) and weights (B, H, T, S).

    Queries and keys have been transformed by the score.
    """
    key = key.repeat_interleave(query.size(1) // key.size(1), dim=1)  # (B, H, S, K)
    value = value.repeat_interleave(query.size(1) // value.size(1), dim=1)  # (B, H, S, V)
    scores = score.scores(query, key)  # (B, H, T, S)
    if mask.bias is not None:
        scores = scores + mask.bias
    allowed = mask.dense(query.size(2), key.size(2), query.device)
    if allowed is not None:
        # The lowest number, not -inf: its exponential is also 0, and a fully masked row keeps finite gradients.
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    softmax_dtype = torch.promote_types(scores.dtype, torch.float32)
    weights = scores.softmax(dim=-1, dtype=softmax_dtype)  # (B, H, T, S)
    if allowed is not None:  # a fully masked row gets zeros, as in the fused kernel
        weights = weights.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)
    weights = weights.to(value.dtype)  # softmax and a float32 bias raise the precision of a low-precision model
    return F.dropout(weights, dropout) @ value, weights  # (B, H, T, V)
