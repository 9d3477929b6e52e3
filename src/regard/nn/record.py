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
from regard.nn.attend import Sight, explicit
from regard.nn.scores import Score


@dataclass(frozen=True)
class Attended:
    """One attention, as it happened."""

    query: Tensor  # (B, H, T, K) after position and score have changed it
    key: Tensor  # (B, G, S, K)
    value: Tensor  # (B, G, S, V)
    seen: Sight
    score: Score
    output: Tensor  # (B, H, T, V) before any replacement


class Record:
    """What was seen. `replace` names attentions whose heads (B, H, T, V) are exchanged, to see what they do.

    Record(replace={"encoder.0.self": lambda heads: heads * 0})
    """

    def __init__(self, replace: Mapping[str, Callable[[Tensor], Tensor]] | None = None) -> None:
        self.attention: dict[str, Attended] = {}
        self.residuals: dict[str, Tensor] = {}  # (B, T, D) by place: "encoder.input", "encoder.0.self", ...
        self._replace = dict(replace or {})

    def attended(self, name: str, attended: Attended) -> Tensor:
        """Write down one attention; what comes back is its output, or what replaces it."""
        self.attention[name] = attended
        change = self._replace.get(name)
        return attended.output if change is None else change(attended.output)

    def weights(self, name: str) -> Tensor:
        """Who looked at whom, (B, H, T, S): recomputed, and without dropout."""
        return self._recompute(name)[1]

    def recomputed_output(self, name: str) -> Tensor:
        """The heads' output (B, H, T, V) by the explicit path: equal to `attention[name].output`."""
        return self._recompute(name)[0]

    def _recompute(self, name: str) -> tuple[Tensor, Tensor]:
        if name not in self.attention:
            known = ", ".join(self.attention) or "none"
            raise RegardError(f"No attention '{name}' was recorded.", fix=f"Recorded: {known}.")
        kept = self.attention[name]
        return explicit(kept.query, kept.key, kept.value, kept.seen, kept.score, dropout=0.0)
