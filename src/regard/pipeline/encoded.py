"""Texts for an encoder: framed as in training, sorted by length, batched by tokens."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.config.model import EncoderOnly as Settings
from regard.decode.protocol import nan_error
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.batches import batch_by_length
from regard.pipeline.encoding import check_length, padded
from regard.pipeline.limits import max_positions
from regard.text.tokenizer import Tokenizer


class BatchLogits(NamedTuple):
    """The head's logits for some texts: which texts these are, and what the model said."""

    indices: list[int]
    logits: Tensor  # (B, T, words), (B, labels) or (B, T, labels)


def add_special_tokens(tokenizer: Tokenizer, *texts: Sequence[int]) -> list[int]:
    """[classify] + text + [separate], and for a pair another text + [separate]: as `regard.data.batches.tasks` frames them."""
    specials = tokenizer.specials
    return [specials.cls, *(token for text in texts for token in (*text, specials.sep))]


def encoder_logits(
    model: EncoderOnly, settings: Settings, tokenizer: Tokenizer, rows: Sequence[list[int]], batch_tokens: int
) -> Iterator[BatchLogits]:
    """What the model says of every row, a batch at a time; the model is left as it was."""
    limit = max_positions(settings.encoder)
    for number, row in enumerate(rows, 1):
        check_length(f"Text {number}", row, limit, where=tokenizer.decode(row))
    device = next(model.parameters()).device
    with eval_mode(model), torch.inference_mode():
        for indices in batch_by_length([len(row) for row in rows], batch_tokens):
            source, valid = padded([rows[index] for index in indices], tokenizer.specials.pad, device)  # (B, T)
            logits = model(source, valid).float()
            if logits.isnan().any():
                raise nan_error()
            yield BatchLogits(indices, logits)
