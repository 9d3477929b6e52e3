"""Run an encoder and its head on texts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.config.model import EncoderOnlyConfig
from regard.decode.protocol import nan_error
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_only import EncoderOnly
from regard.models.inputs import pad
from regard.tasks.encoding import batch_by_length, check_length
from regard.text.tokenizer import Tokenizer


class BatchLogits(NamedTuple):
    """The head's logits for one batch of texts."""

    indices: list[int]
    """Indices of these texts in the list of all texts."""
    logits: Tensor
    """(B, T, V), (B, labels) or (B, T, labels)."""


def make_types(settings: EncoderOnlyConfig, tokens: Tensor, second_starts: Sequence[int] | None) -> Tensor | None:
    """Return the token types of rows (B, T): 1 for the second text of a pair; None if all are 0."""
    if not settings.has_pair_types or second_starts is None:
        return None
    starts = torch.tensor(second_starts, device=tokens.device)
    return (torch.arange(tokens.size(1), device=tokens.device) >= starts[:, None]).long()


def encoder_logits(
    model: EncoderOnly,
    settings: EncoderOnlyConfig,
    tokenizer: Tokenizer,
    rows: Sequence[list[int]],
    batch_tokens: int,
    second_starts: Sequence[int] | None = None,
) -> Iterator[BatchLogits]:
    """Run an encoder and its head on all rows, one batch at a time, in evaluation mode.

    Args:
        model: The encoder.
        settings: Its settings.
        tokenizer: Its tokenizer.
        rows: Token ids with special tokens.
        batch_tokens: Maximum number of tokens in a batch, padding included.
        second_starts: For pairs, the start of the second text in each row.
    """
    for number, row in enumerate(rows, 1):
        check_length(f"Text {number}", row, settings.encoder.max_positions, location=tokenizer.decode(row))
    device = next(model.parameters()).device
    with eval_mode(model), torch.inference_mode():
        for indices in batch_by_length([len(row) for row in rows], batch_tokens):
            source, valid = pad([rows[index] for index in indices], tokenizer.specials.pad, device)  # (B, T)
            types = make_types(settings, source, second_starts and [second_starts[index] for index in indices])
            logits = model(source, valid, types=types).float()
            check_logits(logits)
            yield BatchLogits(indices, logits)


def check_logits(logits: Tensor) -> None:
    """Check that logits (..., classes) have a valid softmax.

    Raises:
        RegardError: A row contains NaN or infinity, or only minus infinity.
    """
    if not logits.amax(dim=-1).isfinite().all():
        raise nan_error()
