"""What travels beside x: `layer(x, context)` never gains an argument."""

from dataclasses import dataclass

from torch import Tensor

from regard.nn.attend import ResolvedMask
from regard.nn.kv_cache import KVCache
from regard.nn.positions import Angles, Position
from regard.nn.record import Record


@dataclass(frozen=True)
class Context:
    """What every layer of a stack needs to know, worked out once. (Default factories would stop `torch.compile`.)"""

    position: Position
    rotary: Angles | None  # what `position.on_heads` needs
    self_masks: tuple[ResolvedMask, ...]  # who sees whom in self-attention: one for all layers, or one for each
    cross_mask: ResolvedMask | None  # who sees whom in cross-attention
    memory: Tensor | None  # (B, S, D) what cross-attention looks at; None once the cache holds its keys
    kv_cache: KVCache | None
    record: Record | None
