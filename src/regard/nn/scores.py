"""Attention scores: the five scoring functions of the lectures.

    dot          q.k
    scaled dot   q.k / sqrt(d_k)
    general      q.W k
    concat       v.tanh(W [q; k])
    additive     v.tanh(W1 q + W2 k)

The first three are a dot product after a transformation of the query (`on_query`) and have a `scale`, so the fused
kernel can compute them. The last two apply a layer to each pair of query and key and have no `scale`.
"""

import copy

import torch
from torch import Tensor, nn


class Score(nn.Module):
    """Scaled dot product; a scale of 1 is the plain dot product."""

    def __init__(self, scale: float | None) -> None:
        super().__init__()
        self.scale = scale

    def on_query(self, query: Tensor) -> Tensor:
        """Transform the query (B, H, T, K) so that only a dot product remains."""
        return query

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the scores (B, H, T, S) of a transformed query (B, H, T, K) and the keys of each head (B, H, S, K)."""
        assert self.scale is not None  # noqa: S101 - subclasses without a scale override this
        return (query @ key.transpose(-2, -1)) * self.scale  # (B, H, T, S)

    def select_heads(self, heads: Tensor) -> "Score":
        """Return the score of some heads (h) only, for queries that were transformed already."""
        selected = copy.copy(self)
        selected._parameters = {
            name: None if parameter is None else nn.Parameter(parameter[heads], requires_grad=False)
            for name, parameter in self._parameters.items()  # every parameter has one slice per head
        }
        return selected


class General(Score):
    """q.W k, with one matrix per head."""

    def __init__(self, heads: int, key_dim: int) -> None:
        super().__init__(scale=1.0)
        self.weight = nn.Parameter(torch.empty(heads, key_dim, key_dim))

    def on_query(self, query: Tensor) -> Tensor:
        """Return q W; a dot product remains."""
        return query @ self.weight  # (B, H, T, K)


class Concat(Score):
    """v.tanh(W [q; k]), with one layer per head."""

    def __init__(self, heads: int, key_dim: int, hidden: int) -> None:
        super().__init__(scale=None)
        self.weight = nn.Parameter(torch.empty(heads, hidden, 2 * key_dim))
        self.vector = nn.Parameter(torch.empty(heads, hidden))

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Compute W [q; k] as the left half of W times q plus the right half times k, without concatenating pairs."""
        left, right = self.weight.chunk(2, dim=-1)  # (H, hidden, K) each
        return _tanh_scores(query @ left.transpose(1, 2), key @ right.transpose(1, 2), self.vector)


class Additive(Score):
    """v.tanh(W1 q + W2 k), with one layer per head."""

    def __init__(self, heads: int, key_dim: int, hidden: int) -> None:
        super().__init__(scale=None)
        self.query_weight = nn.Parameter(torch.empty(heads, hidden, key_dim))
        self.key_weight = nn.Parameter(torch.empty(heads, hidden, key_dim))
        self.vector = nn.Parameter(torch.empty(heads, hidden))

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Apply the layer to every query and every key."""
        left = query @ self.query_weight.transpose(1, 2)  # (B, H, T, hidden)
        right = key @ self.key_weight.transpose(1, 2)  # (B, H, S, hidden)
        return _tanh_scores(left, right, self.vector)


def _tanh_scores(left: Tensor, right: Tensor, vector: Tensor) -> Tensor:
    hidden = torch.tanh(left[:, :, :, None] + right[:, :, None])  # (B, H, T, S, hidden)
    return torch.einsum("bhtsa,ha->bhts", hidden, vector)  # (B, H, T, S)
