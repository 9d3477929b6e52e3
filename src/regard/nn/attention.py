"""Multi-head attention: every token asks (query), is asked (key) and tells (value).

    x ------- query --+
                      +-- scores -- softmax --+
    x or   +- key ----+                       +-- weighted sum -- output
    memory |                                  |
           +- value --------------------------+

Four Linears: queries, keys and values stay apart, so that LoRA, tensor parallelism and export find each of them.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.nn.attend import ResolvedMask, eager_attention, sdpa
from regard.nn.context import Context
from regard.nn.record import AttentionRecord, Record
from regard.nn.scores import Score


class Attention(nn.Module):
    """What self- and cross-attention share. The number of heads follows from the width of the projections."""

    should_upcast = False  # under a narrower autocast, compare and weigh in float32 (`keep_float32`)

    def __init__(
        self,
        name: str,  # its slot in the cache and its page in the record
        layer_index: int,
        query: nn.Linear,  # D -> H K
        key: nn.Linear,  # D -> G K
        value: nn.Linear,  # D -> G V
        output: nn.Linear,  # H V -> D
        key_dim: int,
        value_dim: int,
        score: Score,
        query_norm: nn.Module | None,
        key_norm: nn.Module | None,
        dropout: float,
    ) -> None:
        super().__init__()
        self.name, self.layer_index = name, layer_index
        self.query, self.key, self.value, self.output = query, key, value, output
        self.key_dim, self.value_dim = key_dim, value_dim
        self.score = score
        self.query_norm, self.key_norm = query_norm, key_norm
        self.dropout = dropout

    def project_query(self, x: Tensor) -> Tensor:
        """Queries (B, H, T, K) of x (B, T, D)."""
        return self._split_heads(self._upcast(self.query(x)), self.key_dim, self.query_norm)

    def project_key_value(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (B, G, S, K) and values (B, G, S, V) of x (B, S, D)."""
        key = self._split_heads(self._upcast(self.key(x)), self.key_dim, self.key_norm)
        return key, self._split_heads(self._upcast(self.value(x)), self.value_dim, None)

    def _upcast(self, projected: Tensor) -> Tensor:
        """float32, where attention stays so: before heads are parted and turned, which is dear in mixed types."""
        should_cast = self.should_upcast and torch.is_autocast_enabled(projected.device.type)
        return projected.float() if should_cast else projected

    def _split_heads(self, projected: Tensor, size: int, norm: nn.Module | None) -> Tensor:
        heads = projected.unflatten(-1, (-1, size)).transpose(1, 2)  # (B, T, H size) -> (B, H, T, size)
        return heads if norm is None else norm(heads)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, record: Record | None) -> Tensor:
        """Weigh the values and join the heads: (B, T, D)."""
        query = self.score.on_query(query)
        if self.should_upcast and torch.is_autocast_enabled(query.device.type):
            query, key, value = query.float(), key.float(), value.float()
            with torch.autocast(query.device.type, enabled=False):
                heads = self._attention(query, key, value, mask)  # (B, H, T, V)
        else:
            heads = self._attention(query, key, value, mask)  # (B, H, T, V)
        if record is not None:
            heads = record.add_attention(self.name, AttentionRecord(query, key, value, mask, self.score, heads))
        return self.output(heads.transpose(1, 2).flatten(-2))  # (B, T, H, V) -> (B, T, H V) -> (B, T, D)

    def _attention(self, query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        if self.score.scale is None:
            return eager_attention(query, key, value, mask, self.score, dropout)[0]  # (B, H, T, V)
        return sdpa(query, key, value, mask, self.score.scale, dropout)  # (B, H, T, V)


class SelfAttention(Attention):
    """Tokens look at tokens of their own sequence."""

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """What each token of x (B, T, D) learns from the others."""
        query, key, value = self.project_qkv(x)  # (B, H, T, K), (B, G, T, K), (B, G, T, V)
        if context.rotary is not None:
            query = context.position.on_heads(query, context.rotary)
            key = context.position.on_heads(key, context.rotary)
        if context.kv_cache is not None:
            key, value = context.kv_cache.append(self.name, key, value)  # (B, G, S, K), (B, G, S, V)
            if context.record is not None:  # a cache that is cropped writes over what the record must keep
                key, value = key.clone(), value.clone()
        mask = context.self_masks[self.layer_index % len(context.self_masks)]
        return self.attend(query, key, value, mask, context.record)

    def project_qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of the same x.

        Under the autocast of a CPU they come from one product: x is rounded once, and narrow products are so quick that
        the calls around them count. In float32 that gains nothing.
        """
        projections = (self.query, self.key, self.value)
        is_cpu_autocast = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
        if not is_cpu_autocast or any(
            type(projection) is not nn.Linear for projection in projections
        ):  # what stands in a Linear's place is asked
            return self.project_query(x), *self.project_key_value(x)
        optional_biases: list[Tensor | None] = [projection.bias for projection in projections]
        biases = [bias for bias in optional_biases if bias is not None]
        if len(biases) in (1, 2):
            return self.project_query(x), *self.project_key_value(x)
        weights: list[Tensor] = [projection.weight for projection in projections]
        weight, bias = torch.cat(weights), torch.cat(biases) if biases else None
        packed = self._upcast(F.linear(x, weight, bias))  # (B, T, H K + G K + G V)
        parts = packed.split([projection.out_features for projection in projections], dim=-1)
        sizes, norms = (self.key_dim, self.key_dim, self.value_dim), (self.query_norm, self.key_norm, None)
        query, key, value = (self._split_heads(*part) for part in zip(parts, sizes, norms, strict=True))
        return query, key, value

    if TYPE_CHECKING:
        __call__ = forward


class CrossAttention(Attention):
    """Tokens look at a memory: the last encoder layer's output, the same for every decoder layer."""

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """What each token of x (B, T, D) learns from the memory (B, S, D)."""
        query = self.project_query(x)  # (B, H, T, K)
        if context.memory is not None:
            key, value = self.project_key_value(context.memory)  # (B, G, S, K), (B, G, S, V)
        else:
            assert context.kv_cache is not None  # noqa: S101 - a stack has a memory or remembers one
            key, value = context.kv_cache.memory(self.name)
            if context.record is not None:  # as above: rows that move are written over
                key, value = key.clone(), value.clone()
        assert context.cross_mask is not None  # noqa: S101
        rows_per_memory = query.size(0) // key.size(0)  # rows that share a memory
        if rows_per_memory == 1:
            return self.attend(query, key, value, context.cross_mask, context.record)
        if context.record is not None:  # it tells of every row by itself
            key, value = key.repeat_interleave(rows_per_memory, dim=0), value.repeat_interleave(rows_per_memory, dim=0)
            return self.attend(query, key, value, context.cross_mask.repeat_interleave(rows_per_memory), context.record)
        # To a memory, several rows are one row that asks more: (B group, H, T, K) -> (B, H, group T, K).
        merged_query = query.unflatten(0, (-1, rows_per_memory)).transpose(1, 2).flatten(2, 3)
        output = self.attend(merged_query, key, value, context.cross_mask, None)  # (B, group T, D)
        return output.view(query.size(0), query.size(2), -1)  # (B group, T, D)

    if TYPE_CHECKING:
        __call__ = forward


def set_attention_float32(model: nn.Module, enabled: bool) -> None:
    """Let all attentions of a model stay float32 under a narrower autocast, or not; without autocast it means nothing.

    Where sequences are short, the narrow kernel of a CPU is many times slower than the products around it gain.
    """
    for module in model.modules():
        if isinstance(module, Attention):
            module.should_upcast = enabled
