"""`Record`: keeps the inputs and outputs of every attention and every residual during a forward pass.

    record = Record()
    model(source, target, record=record)
    record.weights("decoder.3.cross")      # (B, H, T, S), recomputed from the recorded inputs

It keeps references to the inputs of the fused kernel, which returns no weights; `weights` recomputes them on demand.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from regard.base.errors import RegardError
from regard.nn.attend import ResolvedMask, eager_attention
from regard.nn.scores import Score


@dataclass(frozen=True)
class AttentionRecord:
    """Inputs and output of one attention module."""

    query: Tensor  # (B, H, T, K) after `position.on_heads` and `score.on_query`
    key: Tensor  # (B, G, S, K)
    value: Tensor  # (B, G, S, V)
    mask: ResolvedMask
    score: Score
    output: Tensor  # (B, H, T, V) before any replacement


class Record:
    """The recorded tensors of a forward pass.

    `replace` maps attention names to functions that replace the heads (B, H, T, V):

        Record(replace={"encoder.0.self": lambda heads: heads * 0})
    """

    def __init__(self, replace: Mapping[str, Callable[[Tensor], Tensor]] | None = None) -> None:
        self.attention: dict[str, AttentionRecord] = {}
        self.residuals: dict[str, Tensor] = {}  # (B, T, D) by name: "encoder.input", "encoder.0.self", ...
        self._replacements = dict(replace or {})

    def __repr__(self) -> str:
        return f"Record(attention of {', '.join(self.attention) or 'nothing yet'})"

    def add_attention(self, name: str, attention: AttentionRecord) -> Tensor:
        """Record one attention; return its output, or the replacement."""
        self.attention[name] = attention
        replacement = self._replacements.get(name)
        return attention.output if replacement is None else replacement(attention.output)

    def weights(self, name: str) -> Tensor:
        """Return the attention weights (B, H, T, S), recomputed without dropout.

        Raises:
            RegardError: No attention of this name was recorded.
        """
        return self._recompute(name)[1]

    def recompute_output(self, name: str) -> Tensor:
        """Return the heads (B, H, T, V) by eager attention: equal to `attention[name].output` up to rounding."""
        return self._recompute(name)[0]

    def _recompute(self, name: str) -> tuple[Tensor, Tensor]:
        if name not in self.attention:
            names = ", ".join(self.attention) or "none"
            raise RegardError(f"No attention named '{name}' was recorded.", fix=f"Recorded names: {names}.")
        attention = self.attention[name]
        return eager_attention(
            attention.query, attention.key, attention.value, attention.mask, attention.score, dropout=0.0
        )
