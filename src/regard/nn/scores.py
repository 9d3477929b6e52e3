"""Attention scores: five scoring functions (Bahdanau et al. 2015, Luong et al. 2015, Vaswani et al. 2017).

    dot          q.k
    scaled dot   q.k / sqrt(d_k)
    general      q.W k
    concat       v.tanh(W [q; k])
    additive     v.tanh(W1 q + W2 k)

The first three are a dot product after a transformation of the query (`on_query`) and have a `scale`, so the fused
kernel can compute them. The last two apply a layer to each query-key pair and have no `scale`; `on_query` and `on_key`
compute the parts that depend on the query or the key alone.
"""

import copy

import torch
from torch import Tensor, nn


class ScoreFunction(nn.Module):
    """Scaled dot product; a scale of 1 is the plain dot product."""

    def __init__(self, scale: float | None) -> None:
        super().__init__()
        self.scale = scale

    def on_query(self, query: Tensor) -> Tensor:
        """Transform the query (B, H, T, K) so that the score is a dot product with the key."""
        return query

    def on_key(self, key: Tensor) -> Tensor:
        """Transform the keys (B, G, S, K): once for all queries."""
        return key

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the scores (B, H, T, S) of transformed queries (B, H, T, K) and keys of each head (B, H, S, K)."""
        assert self.scale is not None  # noqa: S101 - subclasses without a scale override this
        return (query @ key.transpose(-2, -1)) * self.scale  # (B, H, T, S)

    def select_heads(self, heads: Tensor) -> "ScoreFunction":
        """Return the score function for selected heads (h), for queries and keys that are already transformed."""
        selected = copy.copy(self)
        selected._parameters = {
            name: None if parameter is None else nn.Parameter(parameter[heads], requires_grad=False)
            for name, parameter in self._parameters.items()  # every parameter has one slice per head
        }
        return selected


class General(ScoreFunction):
    """q.W k, with one matrix per head."""

    def __init__(self, heads: int, key_dim: int) -> None:
        super().__init__(scale=1.0)
        self.weight = nn.Parameter(torch.empty(heads, key_dim, key_dim))

    def on_query(self, query: Tensor) -> Tensor:
        """Return q W."""
        return torch.einsum("bhtk,hkl->bhtl", query, self.weight)  # (B, H, T, K)


class TanhScore(ScoreFunction):
    """v.tanh(W1 q + W2 k), with one layer per head: the sum of a transformed query and a transformed key."""

    vector: Tensor  # (H, hidden)

    def __init__(self) -> None:
        super().__init__(scale=None)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Return v.tanh(q + k) of every transformed query and key."""
        hidden = torch.tanh(query[:, :, :, None] + key[:, :, None])  # (B, H, T, S, hidden)
        return torch.einsum("bhtsa,ha->bhts", hidden, self.vector)  # (B, H, T, S)


class Concat(TanhScore):
    """v.tanh(W [q; k]): the left half of W times q plus the right half times k, without concatenating pairs."""

    def __init__(self, heads: int, key_dim: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, hidden, 2 * key_dim))
        self.vector = nn.Parameter(torch.empty(heads, hidden))

    def on_query(self, query: Tensor) -> Tensor:
        """Multiply by the left half of W."""
        return _multiply(query, self.weight.chunk(2, dim=-1)[0])

    def on_key(self, key: Tensor) -> Tensor:
        """Multiply by the right half of W."""
        return _multiply(key, self.weight.chunk(2, dim=-1)[1])


class Additive(TanhScore):
    """v.tanh(W1 q + W2 k)."""

    def __init__(self, heads: int, key_dim: int, hidden: int) -> None:
        super().__init__()
        self.query_weight = nn.Parameter(torch.empty(heads, hidden, key_dim))
        self.key_weight = nn.Parameter(torch.empty(heads, hidden, key_dim))
        self.vector = nn.Parameter(torch.empty(heads, hidden))

    def on_query(self, query: Tensor) -> Tensor:
        """Return W1 q."""
        return _multiply(query, self.query_weight)

    def on_key(self, key: Tensor) -> Tensor:
        """Return W2 k."""
        return _multiply(key, self.key_weight)


def _multiply(heads: Tensor, weight: Tensor) -> Tensor:
    """Multiply every head by its matrix (H, hidden, K); fewer heads (B, G, S, K) are repeated: (B, H, S, hidden)."""
    heads = heads.repeat_interleave(weight.size(0) // heads.size(1), dim=1)
    # Not `@`: it would repeat the matrices for every row, and its gradient would be one matrix per row.
    return torch.einsum("bhsk,hak->bhsa", heads, weight)
