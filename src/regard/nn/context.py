"""`Context`: everything a layer needs besides x, so the signature `layer(x, context)` never changes."""

from dataclasses import dataclass

from torch import Tensor

from regard.nn.attend import ResolvedMask
from regard.nn.kv_cache import KVCache
from regard.nn.positions import Angles, Position
from regard.nn.record import Record


@dataclass(frozen=True)
class Context:
    """Inputs that all layers of a stack share, computed once per forward pass.

    No field has a default: default factories would break `torch.compile`.
    """

    position: Position
    rotary: Angles | None  # angles for `position.on_heads`
    self_mask: ResolvedMask | None  # mask of self-attention; None in recurrent stacks
    cross_mask: ResolvedMask | None  # mask of cross-attention
    memory: Tensor | None  # (B, S, D) encoder output for cross-attention; None if the cache holds its keys
    kv_cache: KVCache | None
    record: Record | None
