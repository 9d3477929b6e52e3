"""`Record`: keeps the inputs and outputs of every attention and every residual during a forward pass.

    record = Record()
    model(source, target, record=record)
    record.weights("decoder.3.cross")      # (B, H, T, S), recomputed from the recorded inputs

It keeps references to the inputs of the fused kernel, which does not return weights; `weights` recomputes them on
demand.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.nn.attend import ResolvedMask, eager_attention
from regard.nn.scores import ScoreFunction


@dataclass(frozen=True)
class AttentionRecord:
    """Inputs and output of one attention module."""

    query: Tensor  # (B, H, T, K) after `position.on_heads` and `score.on_query`
    key: Tensor  # (B, G, S, K) after `position.on_heads` and `score.on_key`
    value: Tensor  # (B, G, S, V)
    mask: ResolvedMask
    score: ScoreFunction
    output: Tensor  # (B, H, T, V) before any replacement

    def indices(self, heads: Sequence[int] | None, rows: Sequence[int] | None) -> tuple[Tensor, Tensor]:
        """Return heads and rows as index tensors; None means all."""
        device = self.query.device
        counts = zip((heads, rows), self.query.shape[1:3], strict=True)
        head_index, row_index = (
            torch.arange(count, device=device) if chosen is None else torch.tensor(list(chosen), device=device)
            for chosen, count in counts
        )
        return head_index, row_index

    def select(self, heads: Tensor, rows: Tensor) -> "AttentionRecord":
        """Return the record for selected heads (h) and query rows (t); every head gets its own keys and values."""
        return AttentionRecord(
            query=self.query[:, heads][:, :, rows],  # (B, h, t, K)
            key=self.key[:, heads // (self.query.size(1) // self.key.size(1))],  # (B, h, S, K)
            value=self.value[:, heads // (self.query.size(1) // self.value.size(1))],  # (B, h, S, V)
            mask=self.mask.select(heads, rows, self.key.size(2)),
            score=self.score.select_heads(heads),
            output=self.output[:, heads][:, :, rows],  # (B, h, t, V)
        )


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

    def reorder(self, index: Tensor) -> None:
        """Reorder the rows: row i becomes the old row index[i]. A record that records all rows ignores it."""

    def join_steps(self, name: str, steps: Sequence[AttentionRecord]) -> None:
        """Record the attention of a loop with one query per step as a single attention with all queries."""
        query, output = (torch.cat([getattr(step, part) for step in steps], dim=2) for part in ("query", "output"))
        self.attention[name] = replace(steps[0], query=query, output=output)

    def weights(self, name: str, heads: Sequence[int] | None = None, rows: Sequence[int] | None = None) -> Tensor:
        """Return the attention weights (B, H, T, S), recomputed without dropout.

        Args:
            name: Name of the attention, for example "decoder.3.cross".
            heads: Heads to compute; all by default. One of twelve heads takes a twelfth of the time and memory.
            rows: Queries to compute; all by default.

        Raises:
            RegardError: No attention of this name was recorded.
        """
        return self._recompute(name, heads, rows)[1]

    def recompute_output(
        self, name: str, heads: Sequence[int] | None = None, rows: Sequence[int] | None = None
    ) -> Tensor:
        """Return the heads (B, H, T, V) by eager attention: equal to `attention[name].output` up to rounding."""
        return self._recompute(name, heads, rows)[0]

    def _recompute(self, name: str, heads: Sequence[int] | None, rows: Sequence[int] | None) -> tuple[Tensor, Tensor]:
        attention = self._find(name)
        if heads is not None or rows is not None:
            attention = attention.select(*attention.indices(heads, rows))
        return eager_attention(
            attention.query, attention.key, attention.value, attention.mask, attention.score, dropout=0.0
        )

    def _find(self, name: str) -> AttentionRecord:
        if name not in self.attention:
            names = ", ".join(self.attention) or "none"
            raise RegardError(f"No attention named '{name}' was recorded.", hint=f"Recorded names: {names}.")
        return self.attention[name]
