"""Multi-head attention: softmax(q k^T / sqrt(d_k)) v in every head.

    x ------- query --+
                      +-- scores -- softmax --+
    x or   +- key ----+                       +-- weighted sum -- output
    memory |                                  |
           +- value --------------------------+

Query, key, value and output are four separate Linears, so LoRA, tensor parallelism and export can address each one. The
scores are in `scores.py`, softmax and weighted sum in `attend.py`. Models are built with the subclasses of
`autocast_attention.py`, which add a CPU fast path for low precision.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from regard.nn.attend import ResolvedMask, eager_attention, sdpa
from regard.nn.context import Context
from regard.nn.kv_cache import KVCache
from regard.nn.record import AttentionRecord, Record
from regard.nn.scores import ScoreFunction


class Attention(nn.Module):
    """Base class of self- and cross-attention. The projection sizes determine the number of heads."""

    def __init__(
        self,
        name: str,  # key of this module in the KV cache and in the record
        query: nn.Linear,  # D -> H K
        key: nn.Linear,  # D -> G K
        value: nn.Linear,  # D -> G V
        output: nn.Linear,  # H V -> D
        key_dim: int,
        value_dim: int,
        score: ScoreFunction,
        query_norm: nn.Module | None,
        key_norm: nn.Module | None,
        dropout: float,
    ) -> None:
        super().__init__()
        self.name = name
        self.query, self.key, self.value, self.output = query, key, value, output
        self.key_dim, self.value_dim = key_dim, value_dim
        self.score = score
        self.query_norm, self.key_norm = query_norm, key_norm
        self.dropout = dropout

    def project_query(self, x: Tensor) -> Tensor:
        """Return the queries (B, H, T, K) of x (B, T, D)."""
        return self.split_heads(self.query(x), self.key_dim, self.query_norm)

    def project_key_value(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys (B, G, S, K) and values (B, G, S, V) of x (B, S, D)."""
        key = self.split_heads(self.key(x), self.key_dim, self.key_norm)
        return key, self.split_heads(self.value(x), self.value_dim, None)

    def split_heads(self, projected: Tensor, size: int, norm: nn.Module | None) -> Tensor:
        """Split a projection into heads of this size and normalize them if there is a norm."""
        heads = projected.unflatten(-1, (-1, size)).transpose(1, 2)  # (B, T, H size) -> (B, H, T, size)
        return heads if norm is None else norm(heads)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, record: Record | None) -> Tensor:
        """Attend with every head and project the concatenated heads: (B, T, D). Keys are already transformed."""
        query = self.score.on_query(query)
        heads = self.weighted_sum(query, key, value, mask, record)  # (B, H, T, V)
        return self.output(heads.transpose(1, 2).flatten(-2))  # (B, T, H, V) -> (B, T, H V) -> (B, T, D)

    def weighted_sum(
        self, query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, record: Record | None
    ) -> Tensor:
        """Return softmax(scores) v of every head, (B, H, T, V). Queries and keys are already transformed."""
        dropout = self.dropout if self.training else 0.0
        if self.score.scale is None:
            heads = eager_attention(query, key, value, mask, self.score, dropout)[0]
        else:
            heads = sdpa(query, key, value, mask, self.score.scale, dropout)
        if record is None:
            return heads
        return record.add_attention(self.name, AttentionRecord(query, key, value, mask, self.score, heads))


class SelfAttention(Attention):
    """Tokens attend to tokens of their own sequence."""

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        query = self.project_query(x)  # (B, H, T, K)
        key, value = self.project_key_value(x)  # (B, G, T, K), (B, G, T, V)
        if context.rotary is not None:
            query = context.position.on_heads(query, context.rotary)
            key = context.position.on_heads(key, context.rotary)
        if context.kv_cache is not None:
            key, value = context.kv_cache.append(self.name, key, value)  # (B, G, S, K), (B, G, S, V)
            if context.record is not None:  # later steps may overwrite the cache, the record must not change
                key, value = key.clone(), value.clone()
        assert context.self_mask is not None  # noqa: S101 - the stack sets it
        return self.attend(query, self.score.on_key(key), value, context.self_mask, context.record)

    if TYPE_CHECKING:
        __call__ = forward


class CrossAttention(Attention):
    """Tokens attend to a memory: the encoder's output, the same for every decoder layer."""

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """(B, T, D) and the context's memory (B, S, D) -> (B, T, D)."""
        key, value = self.read_memory(context)
        return self.attend_memory(x, self.score.on_key(key), value, context)

    if TYPE_CHECKING:
        __call__ = forward

    def cache_memory(self, memory: Tensor, kv_cache: KVCache) -> None:
        """Store the keys and values of a memory (B, S, D), once for all steps."""
        kv_cache.store_memory(self.name, *self.project_key_value(memory))

    def read_memory(self, context: Context) -> tuple[Tensor, Tensor]:
        """Return the keys (B, G, S, K) and values (B, G, S, V) of the context's memory or from the cache."""
        if context.memory is not None:
            return self.project_key_value(context.memory)
        assert context.kv_cache is not None  # noqa: S101 - without a memory, the cache holds its keys
        key, value = context.kv_cache.memory(self.name)
        if context.record is not None:  # as above: `reorder` overwrites rows
            key, value = key.clone(), value.clone()
        return key, value

    def attend_memory(self, x: Tensor, key: Tensor, value: Tensor, context: Context) -> Tensor:
        """Attend to the keys (already transformed by the score) and values of a memory: (B, T, D)."""
        query = self.project_query(x)  # (B, H, T, K)
        assert context.cross_mask is not None  # noqa: S101
        rows_per_memory = query.size(0) // key.size(0)
        if rows_per_memory == 1:
            return self.attend(query, key, value, context.cross_mask, context.record)
        if context.record is not None:  # a record has one attention matrix per row
            key, value = key.repeat_interleave(rows_per_memory, dim=0), value.repeat_interleave(rows_per_memory, dim=0)
            return self.attend(query, key, value, context.cross_mask.repeat_interleave(rows_per_memory), context.record)
        # Rows that share a memory become one row with W times as many queries: (B W, H, T, K) -> (B, H, W T, K).
        merged_query = query.unflatten(0, (-1, rows_per_memory)).transpose(1, 2).flatten(2, 3)
        output = self.attend(merged_query, key, value, context.cross_mask, None)  # (B, W T, D)
        return output.view(query.size(0), query.size(2), -1)  # (B W, T, D)
