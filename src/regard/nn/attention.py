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

from regard.nn.attend import Sight, explicit, fused
from regard.nn.context import Context
from regard.nn.record import Attended, Record
from regard.nn.scores import Score


class Attention(nn.Module):
    """What self- and cross-attention share. The number of heads follows from the width of the projections."""

    in_float32 = False  # under a narrower autocast, compare and weigh in float32 (`keep_float32`)

    def __init__(
        self,
        name: str,  # its slot in the cache and its page in the record
        layer: int,
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
        self.name, self.layer = name, layer
        self.query, self.key, self.value, self.output = query, key, value, output
        self.key_dim, self.value_dim = key_dim, value_dim
        self.score = score
        self.query_norm, self.key_norm = query_norm, key_norm
        self.dropout = dropout

    def ask(self, x: Tensor) -> Tensor:
        """Queries (B, H, T, K) of x (B, T, D)."""
        return self._heads(self._kept(self.query(x)), self.key_dim, self.query_norm)

    def answer(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (B, G, S, K) and values (B, G, S, V) of x (B, S, D)."""
        key = self._heads(self._kept(self.key(x)), self.key_dim, self.key_norm)
        return key, self._heads(self._kept(self.value(x)), self.value_dim, None)

    def _kept(self, projected: Tensor) -> Tensor:
        """float32, where attention stays so: before heads are parted and turned, which is dear in mixed types."""
        narrow = self.in_float32 and torch.is_autocast_enabled(projected.device.type)
        return projected.float() if narrow else projected

    def _heads(self, projected: Tensor, size: int, norm: nn.Module | None) -> Tensor:
        heads = projected.unflatten(-1, (-1, size)).transpose(1, 2)  # (B, T, H size) -> (B, H, T, size)
        return heads if norm is None else norm(heads)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, seen: Sight, record: Record | None) -> Tensor:
        """Weigh the values and join the heads: (B, T, D)."""
        query = self.score.on_query(query)
        if self.in_float32 and torch.is_autocast_enabled(query.device.type):
            query, key, value = query.float(), key.float(), value.float()
            with torch.autocast(query.device.type, enabled=False):
                heads = self._weigh(query, key, value, seen)  # (B, H, T, V)
        else:
            heads = self._weigh(query, key, value, seen)  # (B, H, T, V)
        if record is not None:
            heads = record.attended(self.name, Attended(query, key, value, seen, self.score, heads))
        return self.output(heads.transpose(1, 2).flatten(-2))  # (B, T, H, V) -> (B, T, H V) -> (B, T, D)

    def _weigh(self, query: Tensor, key: Tensor, value: Tensor, seen: Sight) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        if self.score.scale is None:
            return explicit(query, key, value, seen, self.score, dropout)[0]  # (B, H, T, V)
        return fused(query, key, value, seen, self.score.scale, dropout)  # (B, H, T, V)


class SelfAttention(Attention):
    """Tokens look at tokens of their own sequence."""

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """What each token of x (B, T, D) learns from the others."""
        query, key, value = self.ask_and_answer(x)  # (B, H, T, K), (B, G, T, K), (B, G, T, V)
        if context.angles is not None:
            query = context.position.on_heads(query, context.angles)
            key = context.position.on_heads(key, context.angles)
        if context.cache is not None:
            key, value = context.cache.append(self.name, key, value)  # (B, G, S, K), (B, G, S, V)
            if context.record is not None:  # a cache that is cropped writes over what the record must keep
                key, value = key.clone(), value.clone()
        seen = context.own[self.layer % len(context.own)]
        return self.attend(query, key, value, seen, context.record)

    def ask_and_answer(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of the same x.

        Under the autocast of a CPU they come from one product: x is rounded once, and narrow products are so quick that
        the calls around them count. In float32 that gains nothing.
        """
        each = (self.query, self.key, self.value)
        narrow = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
        if not narrow or any(type(one) is not nn.Linear for one in each):  # what stands in a Linear's place is asked
            return self.ask(x), *self.answer(x)
        maybe: list[Tensor | None] = [one.bias for one in each]
        biases = [bias for bias in maybe if bias is not None]
        if len(biases) in (1, 2):
            return self.ask(x), *self.answer(x)
        weights: list[Tensor] = [one.weight for one in each]
        weight, bias = torch.cat(weights), torch.cat(biases) if biases else None
        joined = self._kept(F.linear(x, weight, bias))  # (B, T, H K + G K + G V)
        parts = joined.split([one.out_features for one in each], dim=-1)
        sizes, norms = (self.key_dim, self.key_dim, self.value_dim), (self.query_norm, self.key_norm, None)
        query, key, value = (self._heads(*part) for part in zip(parts, sizes, norms, strict=True))
        return query, key, value

    if TYPE_CHECKING:
        __call__ = forward


class CrossAttention(Attention):
    """Tokens look at a memory: the last encoder layer's output, the same for every decoder layer."""

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """What each token of x (B, T, D) learns from the memory (B, S, D)."""
        query = self.ask(x)  # (B, H, T, K)
        if context.memory is not None:
            key, value = self.answer(context.memory)  # (B, G, S, K), (B, G, S, V)
        else:
            assert context.cache is not None  # noqa: S101 - a stack has a memory or remembers one
            key, value = context.cache.recall(self.name)
            if context.record is not None:  # as above: rows that move are written over
                key, value = key.clone(), value.clone()
        assert context.across is not None  # noqa: S101
        group = query.size(0) // key.size(0)  # rows that share a memory
        if group == 1:
            return self.attend(query, key, value, context.across, context.record)
        if context.record is not None:  # it tells of every row by itself
            key, value = key.repeat_interleave(group, dim=0), value.repeat_interleave(group, dim=0)
            return self.attend(query, key, value, context.across.repeated(group), context.record)
        # To a memory, several rows are one row that asks more: (B group, H, T, K) -> (B, H, group T, K).
        together = query.unflatten(0, (-1, group)).transpose(1, 2).flatten(2, 3)
        answer = self.attend(together, key, value, context.across, None)  # (B, group T, D)
        return answer.view(query.size(0), query.size(2), -1)  # (B group, T, D)

    if TYPE_CHECKING:
        __call__ = forward


def keep_float32(model: nn.Module, kept: bool) -> None:
    """Let all attentions of a model stay float32 under a narrower autocast, or not; without autocast it means nothing.

    Where sequences are short, the narrow kernel of a CPU is many times slower than the products around it gain.
    """
    for module in model.modules():
        if isinstance(module, Attention):
            module.in_float32 = kept
