"""Search recorded, attention replayed.

A search records its candidates only, at full speed. Its result is then run once with a record, as in training: this
gives encoder, self- and cross-attention together, equal to those of the search up to rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.models.build import AnyModel
from regard.models.cpu_decoder import eval_mode
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.heads import ClassHead
from regard.nn.record import Record

MAX_LOGITS = 2**24  # logits that are computed at a time: 64 MB


@dataclass(frozen=True)
class ReplayInput:
    """One text as a model processed it, and the output whose probability is of interest."""

    model: AnyModel
    source: Sequence[int] = ()
    """Tokens that the encoder reads."""
    target: Sequence[int] = ()
    """Tokens that the decoder reads."""
    rows: Sequence[int] = ()
    """Rows of the logits that predict the output; of a classifier [0]."""
    labels: Sequence[int] = ()
    """The token or label that each row predicted."""
    suppressed: Sequence[int] = ()
    """Tokens that cannot be predicted and have no probability."""
    media: Tensor | None = None
    """An image (1, channels, height, width) or a spectrogram (1, frames, bins), which the encoder reads instead."""
    vectors: int = 0
    """Number of vectors that `media` becomes."""

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return next(self.model.parameters()).device

    @property
    def length(self) -> int:
        """Number of tokens, or vectors, of both sides."""
        return self.source_length + len(self.target)

    @property
    def source_length(self) -> int:
        """Number of tokens or vectors that the encoder reads."""
        return len(self.source) if self.media is None else self.vectors

    def replay(self, record: Record | None = None, copies: int = 1) -> Tensor:
        """Run the text once and return the log-probability of each label, (copies, labels).

        Args:
            record: Records the attention, or changes it.
            copies: Number of equal rows of the batch.
        """
        labels = torch.tensor(list(self.labels), device=self.device)  # (n)
        with eval_mode(self.model, bypasses=("forward",)), torch.inference_mode():
            x = self._hidden_states(self.target, record, copies)
            logits_per_row = self.model.head(x[:, :1]).size(-1) * copies
            step, parts = max(1, MAX_LOGITS // logits_per_row), []
            for start in range(0, len(self.rows), step):
                logprobs = self._logprobs(x, self.rows[start : start + step])  # (copies, n, V)
                part = labels[start : start + step].expand(copies, -1)[:, :, None]  # (copies, n, 1)
                parts.append(logprobs.gather(2, part)[:, :, 0])
            return torch.cat(parts, dim=1) if parts else x.new_zeros(copies, 0)

    def distributions(self, target: Sequence[int], rows: Sequence[int]) -> Tensor:
        """Return the log-probabilities (rows, V) after the decoder has read other tokens."""
        with eval_mode(self.model, bypasses=("forward",)), torch.inference_mode():
            return self._logprobs(self._hidden_states(target, None, 1), rows)[0]

    def _hidden_states(self, target_ids: Sequence[int], record: Record | None, copies: int) -> Tensor:
        source, target = (
            torch.tensor([list(ids)], device=self.device).expand(copies, -1) for ids in (self.source, target_ids)
        )
        if self.media is not None:
            source = self.media.expand(copies, *self.media.shape[1:])
        if isinstance(self.model, EncoderDecoder):
            return self.model.hidden_states(source, target, record=record)
        if isinstance(self.model, DecoderOnly):
            return self.model.hidden_states(target, record=record)
        return self.model.hidden_states(source, record=record)[0]

    def label_logits(self, copies: int = 1) -> Tensor:
        """Return the logit of each label, (copies, labels), with gradients if they are enabled."""
        logits = self._logits(self._hidden_states(self.target, None, copies), self.rows)  # (copies, n, V)
        labels = torch.tensor(list(self.labels), device=self.device).expand(copies, -1)[:, :, None]  # (copies, n, 1)
        return logits.gather(2, labels)[:, :, 0]

    def _logits(self, x: Tensor, rows: Sequence[int]) -> Tensor:
        """Return the logits of some rows, (B, n, V); a classifier has one row."""
        if isinstance(self.model.head, ClassHead):
            return self.model.head(x)[:, None].float()
        return self.model.head(x[:, list(rows)]).float()

    def _logprobs(self, x: Tensor, rows: Sequence[int]) -> Tensor:
        """Return the log-probabilities of some rows, (B, n, V)."""
        logits = self._logits(x, rows)
        if self.suppressed:
            logits[:, :, list(self.suppressed)] = float("-inf")
        return logits.log_softmax(dim=-1)
