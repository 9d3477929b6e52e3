"""`Stack`: one module for encoders, decoders and decoders with cross-attention, which differ in their masks."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.base.errors import ShapeError
from regard.nn.attend import ResolvedMask, resolve_mask
from regard.nn.context import Context
from regard.nn.dropout import Dropout
from regard.nn.kv_cache import KVCache
from regard.nn.layer import Layer
from regard.nn.masks import Mask
from regard.nn.positions import Position
from regard.nn.record import Record


class Stack(nn.Module):
    """Position encoding, layers and norms; computes the `Context` that all layers share."""

    checkpoint_activations = False  # in training, recompute a layer's activations in the backward pass

    def __init__(
        self,
        name: str,
        position: Position,
        input_norm: nn.Module | None,
        token_dropout: float,
        dropout: float,
        layers: list[Layer],
        final_norm: nn.Module | None,
    ) -> None:
        super().__init__()
        self.name = name
        self.position = position
        self.input_norm = input_norm
        self.token_dropout = Dropout(token_dropout)
        self.dropout = Dropout(dropout)
        self.layers: list[Layer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.final_norm = final_norm

    def forward(
        self,
        x: Tensor,
        mask: Mask,
        positions: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Mask | None = None,
        kv_cache: KVCache | None = None,
        record: Record | None = None,
    ) -> Tensor:
        """(B, T, D) -> (B, T, D).

        Args:
            x: Embeddings.
            mask: Mask of self-attention.
            positions: Positions (1 or B, T), for packed rows. Default: from 0, or from the end of the cache.
            memory: Encoder output (B, S, D) for cross-attention. With a cache, `EncoderDecoder.start` stores it.
            memory_mask: Mask of cross-attention.
            kv_cache: Cache of earlier tokens, to which the new ones are appended.
            record: Where to record attentions and residuals.

        Raises:
            ShapeError: The input is longer than the learned positions.
        """
        if kv_cache is not None:
            self._check_length(kv_cache.length + x.size(1))
            positions = kv_cache.positions(x.size(1), x.device)  # (1|B, T)
        elif positions is None:
            self._check_length(x.size(1))
            positions = torch.arange(x.size(1), device=x.device)[None]  # (1, T)
        elif (
            self.position.max_positions is not None
            and positions.device.type == "cpu"
            and not torch.compiler.is_compiling()
        ):
            self._check_length(int(positions.max()) + 1)  # on a GPU this would force a synchronization
        context = Context(
            position=self.position,
            rotary=self.position.angles(positions),
            self_mask=self._resolve_self_mask(x, mask, positions, kv_cache),
            cross_mask=None if memory_mask is None else resolve_cross_mask(x, memory_mask),
            memory=memory,
            kv_cache=kv_cache,
            record=record,
        )
        x = self._embed(x, positions)
        if record is not None:
            record.residuals[f"{self.name}.input"] = x
        checkpointing = (
            self.checkpoint_activations and self.training and kv_cache is None and record is None
        )  # cache and record need each layer to run exactly once
        for layer in self.layers:
            x = checkpoint(layer, x, context, use_reentrant=False) if checkpointing else layer(x, context)
        if kv_cache is not None:
            kv_cache.advance(x.size(1))
        return x if self.final_norm is None else self.final_norm(x)

    if TYPE_CHECKING:
        __call__ = forward

    def _embed(self, x: Tensor, positions: Tensor) -> Tensor:
        if torch.is_autocast_enabled(x.device.type):  # the residual stream is float32
            x = x.float()
        if self.training and self.token_dropout.rate:
            x = x * self.token_dropout(torch.ones_like(x[..., :1]))  # one random number per token
        x = self.position.on_input(x, positions)
        if self.input_norm is not None:
            x = self.input_norm(x)
        return self.dropout(x)

    def _resolve_self_mask(self, x: Tensor, mask: Mask, positions: Tensor, kv_cache: KVCache | None) -> ResolvedMask:
        """Resolve the mask of self-attention, with the bias of the positions."""
        if kv_cache is None:
            key_positions = positions
            key_index = query_index = torch.arange(x.size(1), device=x.device)[None]  # (1, T)
        else:
            query_index = positions  # (1|B, T)
            key_positions = key_index = torch.arange(kv_cache.length + x.size(1), device=x.device)[None]  # (1, S)
        is_square = kv_cache is None or kv_cache.length == 0
        return resolve_mask(
            mask,
            query_index,
            key_index,
            is_square=is_square,
            positions=(positions, key_positions),
            bias=self.position.on_scores(positions, key_positions),
        )

    def _check_length(self, length: int) -> None:
        max_positions = self.position.max_positions
        if max_positions is not None and not torch.compiler.is_compiling() and length > max_positions:
            raise ShapeError(
                f"The text has {length} tokens, but the learned positions end at {max_positions}.",
                location=self.name,
                hint="Shorten the text, or train a model with a larger position.length.",
            )


def resolve_cross_mask(x: Tensor, memory_mask: Mask) -> ResolvedMask:
    """Resolve the mask of cross-attention."""
    index = torch.zeros(1, 1, dtype=torch.long, device=x.device)  # padding is the only mask of a memory
    return resolve_mask(memory_mask, index, index, is_square=False)
