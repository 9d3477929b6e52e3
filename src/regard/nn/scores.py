"""How well a query fits a key: the five scores of the lectures.

    dot          q.k
    scaled dot   q.k / sqrt(d_k)
    general      q.W k
    concat       v.tanh(W [q; k])
    additive     v.tanh(W1 q + W2 k)

The first three are a dot product after a change of the query, so the fused kernel can run them: they name
a `scale` and change the query in `on_query`. The last two need a layer for each pair and have no `scale`.
"""

import torch
from torch import Tensor, nn


class Score(nn.Module):
    """A dot product with a scale: scaled dot, and dot with scale 1."""

    def __init__(self, scale: float | None) -> None:
        super().__init__()
        self.scale = scale

    def on_query(self, query: Tensor) -> Tensor:
        """Change the query (B, H, T, K) so that a dot product is all that is left."""
        return query

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Scores (B, H, T, S) of a changed query (B, H, T, K) and a key for each head (B, H, S, K)."""
        assert self.scale is not None  # noqa: S101 - kinds without a scale have their own `pairs`
        return (query @ key.transpose(-2, -1)) * self.scale  # (B, H, T, S)


class General(Score):
    """q.W k, with a matrix for each head."""

    def __init__(self, heads: int, key_dim: int) -> None:
        super().__init__(scale=1.0)
        self.weight = nn.Parameter(torch.empty(heads, key_dim, key_dim))

    def on_query(self, query: Tensor) -> Tensor:
        """Q W: what is left is a dot product."""
        return query @ self.weight  # (B, H, T, K)


class Concat(Score):
    """v.tanh(W [q; k]), with a layer for each head."""

    def __init__(self, heads: int, key_dim: int, hidden: int) -> None:
        super().__init__(scale=None)
        self.weight = nn.Parameter(torch.empty(heads, hidden, 2 * key_dim))
        self.vector = nn.Parameter(torch.empty(heads, hidden))

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """W [q; k] is the left half of W times q plus the right half times k: no pair is ever built."""
        left, right = self.weight.chunk(2, dim=-1)  # (H, hidden, K) each
        return _tanh_scores(query @ left.transpose(1, 2), key @ right.transpose(1, 2), self.vector)


class Additive(Score):
    """v.tanh(W1 q + W2 k), with a layer for each head."""

    def __init__(self, heads: int, key_dim: int, hidden: int) -> None:
        super().__init__(scale=None)
        self.query_weight = nn.Parameter(torch.empty(heads, hidden, key_dim))
        self.key_weight = nn.Parameter(torch.empty(heads, hidden, key_dim))
        self.vector = nn.Parameter(torch.empty(heads, hidden))

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Every query with every key, through the layer."""
        left = query @ self.query_weight.transpose(1, 2)  # (B, H, T, hidden)
        right = key @ self.key_weight.transpose(1, 2)  # (B, H, S, hidden)
        return _tanh_scores(left, right, self.vector)


def _tanh_scores(left: Tensor, right: Tensor, vector: Tensor) -> Tensor:
    hidden = torch.tanh(left[:, :, :, None] + right[:, :, None])  # (B, H, T, S, hidden)
    return torch.einsum("bhtsa,ha->bhts", hidden, vector)  # (B, H, T, S)
