"""A notebook that travels in the context: with it the core writes down what it does, without it nothing changes.

    record = Record()
    model(source, target, record=record)
    record.weights("decoder.3.cross")      # (B, H, T, S), recomputed from what was kept

It keeps references to what the fused kernel was given; the weights are recomputed only when asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from regard.base.errors import RegardError
from regard.nn.attend import ResolvedMask, eager_attention
from regard.nn.scores import Score


@dataclass(frozen=True)
class AttentionRecord:
    """One attention, as it happened."""

    query: Tensor  # (B, H, T, K) after position and score have changed it
    key: Tensor  # (B, G, S, K)
    value: Tensor  # (B, G, S, V)
    mask: ResolvedMask
    score: Score
    output: Tensor  # (B, H, T, V) before any replacement


class Record:
    """What was seen. `replace` names attentions whose heads (B, H, T, V) are exchanged, to see what they do.

    Record(replace={"encoder.0.self": lambda heads: heads * 0})
    """

    def __init__(self, replace: Mapping[str, Callable[[Tensor], Tensor]] | None = None) -> None:
        self.attention: dict[str, AttentionRecord] = {}
        self.residuals: dict[str, Tensor] = {}  # (B, T, D) by place: "encoder.input", "encoder.0.self", ...
        self._replacements = dict(replace or {})

    def add_attention(self, name: str, attention: AttentionRecord) -> Tensor:
        """Write down one attention; what comes back is its output, or what replaces it."""
        self.attention[name] = attention
        replacement = self._replacements.get(name)
        return attention.output if replacement is None else replacement(attention.output)

    def weights(self, name: str) -> Tensor:
        """Who looked at whom, (B, H, T, S): recomputed, and without dropout."""
        return self._recompute(name)[1]

    def recompute_output(self, name: str) -> Tensor:
        """The heads' output (B, H, T, V) by the explicit path: equal to `attention[name].output`."""
        return self._recompute(name)[0]

    def _recompute(self, name: str) -> tuple[Tensor, Tensor]:
        if name not in self.attention:
            names = ", ".join(self.attention) or "none"
            raise RegardError(f"No attention '{name}' was recorded.", fix=f"Recorded: {names}.")
        attention = self.attention[name]
        return eager_attention(
            attention.query, attention.key, attention.value, attention.mask, attention.score, dropout=0.0
        )
