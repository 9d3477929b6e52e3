"""Attention weights of a model for one text, with the tokens of their rows and columns.

    attention = translator.record("Two dogs play.")
    attention.cross[3, 0]              # layer 3, head 0: (target tokens, source tokens)
    attention["decoder.3.cross"][0]    # the same by name

Row i of the decoder belongs to the token that it reads, `target_tokens[i]`; it predicts the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.models.build import AnyModel
from regard.models.cpu_decoder import eval_mode
from regard.nn.record import Record
from regard.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class RecordedAttention:
    """The attention weights of one forward pass, by layer and head."""

    source_tokens: tuple[str, ...]
    """Text of each encoder token; special tokens by name. Empty without an encoder."""
    target_tokens: tuple[str, ...]
    """Text of each decoder token, bos first. Empty without a decoder."""
    record: Record
    """The full record (`regard.nn.record`)."""

    @property
    def names(self) -> list[str]:
        """Names of all attention layers, e.g. "decoder.3.cross"."""
        return list(self.record.attention)

    def __getitem__(self, name: str) -> Tensor:
        """Return the weights of one attention layer, (heads, query tokens, key tokens)."""
        with torch.no_grad():
            return self.record.weights(name)[0].cpu()

    @property
    def encoder(self) -> Tensor:
        """Self-attention of the encoder, (layers, heads, source tokens, source tokens)."""
        return self._stack("encoder", "self")

    @property
    def decoder(self) -> Tensor:
        """Self-attention of the decoder, (layers, heads, target tokens, target tokens)."""
        return self._stack("decoder", "self")

    @property
    def cross(self) -> Tensor:
        """Cross-attention, (layers, heads, target tokens, source tokens)."""
        return self._stack("decoder", "cross")

    def _stack(self, stack: str, kind: str) -> Tensor:
        names = [name for name in self.names if name.startswith(f"{stack}.") and name.endswith(f".{kind}")]
        if not names:
            message = "cross-attention" if kind == "cross" else stack
            raise RegardError(f"This model has no {message}.", hint=f"Recorded names: {', '.join(self.names)}.")
        return torch.stack([self[name] for name in names])

    def __repr__(self) -> str:
        sizes = f"{len(self.source_tokens)} source tokens, {len(self.target_tokens)} target tokens"
        return f"RecordedAttention({sizes}, {', '.join(self.names)})"


def record_attention(
    model: AnyModel,
    tokenizers: TokenizerPair,
    *,
    source: Sequence[int] = (),
    target: Sequence[int] = (),
    **options: Any,
) -> RecordedAttention:
    """Run a model on one row of token ids and record its attention.

    Args:
        model: The model; it runs in evaluation mode, and the mode of every module is restored.
        tokenizers: The model's tokenizers.
        source: Encoder input tokens.
        target: Decoder input tokens.
        options: Further arguments of the model's `hidden_states`, e.g. token types.
    """
    record, device = Record(), next(model.parameters()).device
    source_ids, target_ids = (torch.tensor([list(ids)], device=device) for ids in (source, target))  # (1, S), (1, T)
    with eval_mode(model, bypasses=("forward",)), torch.no_grad():
        model.read_sides(source_ids, target_ids, record=record, **options)
    return RecordedAttention(tokenizers.source.token_texts(source), tokenizers.target.token_texts(target), record)
