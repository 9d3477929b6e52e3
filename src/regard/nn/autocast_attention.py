"""CPU fast path; reference: nn/attention.py; proven by: tests/nn/test_qkv_packing.py, tests/train/test_precision.py.

Attention under the autocast of a CPU with bfloat16 (AMX). Two things make it faster there; without autocast both
classes compute exactly what their base classes do.

packed QKV          queries, keys and values come from one product: x is rounded once, and low-precision products
                    are so fast that the calls around them count. In float32 packing gains nothing.
float32 attention   (`set_attention_float32`) scores, softmax and weighted sum stay float32: for short sequences the
                    bfloat16 attention kernel of a CPU loses more than the products around it gain.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.nn.attend import ResolvedMask
from regard.nn.attention import Attention, CrossAttention, SelfAttention
from regard.nn.record import Record


class AutocastAttention(Attention):
    """Attention that can stay in float32 under a lower-precision autocast."""

    should_upcast = False  # set by `set_attention_float32`

    def split_heads(self, projected: Tensor, size: int, norm: nn.Module | None) -> Tensor:
        """Upcast before heads are split and rotated, because mixed types are slow there."""
        return super().split_heads(self._upcast(projected), size, norm)

    def weighted_sum(
        self, query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, record: Record | None
    ) -> Tensor:
        """Return softmax(scores) v of every head, in float32 if this attention is upcast."""
        if not self._is_upcasting(query):
            return super().weighted_sum(query, key, value, mask, record)
        with torch.autocast(query.device.type, enabled=False):
            return super().weighted_sum(query.float(), key.float(), value.float(), mask, record)

    def _is_upcasting(self, x: Tensor) -> bool:
        return self.should_upcast and torch.is_autocast_enabled(x.device.type)

    def _upcast(self, projected: Tensor) -> Tensor:
        return projected.float() if self._is_upcasting(projected) else projected


class AutocastSelfAttention(AutocastAttention, SelfAttention):
    """Self-attention with packed QKV under the autocast of a CPU."""

    def project_qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of the same x, from one product where that is faster."""
        projections = (self.query, self.key, self.value)
        is_cpu_autocast = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
        if not is_cpu_autocast or any(type(projection) is not nn.Linear for projection in projections):
            return super().project_qkv(x)  # adapters that replace a Linear must be called
        optional_biases: list[Tensor | None] = [projection.bias for projection in projections]
        biases = [bias for bias in optional_biases if bias is not None]
        if len(biases) in (1, 2):
            return super().project_qkv(x)
        weights: list[Tensor] = [projection.weight for projection in projections]
        weight, bias = torch.cat(weights), torch.cat(biases) if biases else None
        packed = self._upcast(F.linear(x, weight, bias))  # (B, T, H K + G K + G V)
        query, key, value = packed.split([projection.out_features for projection in projections], dim=-1)
        return (
            self.split_heads(query, self.key_dim, self.query_norm),
            self.split_heads(key, self.key_dim, self.key_norm),
            self.split_heads(value, self.value_dim, None),
        )


class AutocastCrossAttention(AutocastAttention, CrossAttention):
    """Cross-attention that can stay in float32 under a lower-precision autocast."""


def set_attention_float32(model: nn.Module, enabled: bool) -> None:
    """Let all attentions of a model stay in float32 under autocast, or not. Without autocast this has no effect."""
    for module in model.modules():
        if isinstance(module, AutocastAttention):
            module.should_upcast = enabled
