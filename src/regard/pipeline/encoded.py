"""Texts for an encoder: framed as in training, sorted by length, batched by tokens."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.config.model import EncoderOnly as Settings
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.batches import by_length
from regard.pipeline.limits import learned_positions
from regard.pipeline.quiet import quiet
from regard.text.tokenizer import Tokenizer


class Answer(NamedTuple):
    """The head's logits for some texts: which texts these are, and what the model said."""

    places: list[int]
    logits: Tensor  # (B, T, words), (B, labels) or (B, T, labels)


def framed(tokenizer: Tokenizer, *texts: Sequence[int]) -> list[int]:
    """[classify] + text + [separate], and for a pair another text + [separate]: as `regard.data.tasks` frames them."""
    specials = tokenizer.specials
    return [specials.classify, *(token for text in texts for token in (*text, specials.separate))]


def answers(
    model: EncoderOnly, settings: Settings, tokenizer: Tokenizer, rows: Sequence[list[int]], batch_tokens: int
) -> Iterator[Answer]:
    """What the model says of every row, a batch at a time; the model is left as it was."""
    limit = learned_positions(settings.encoder)
    for number, row in enumerate(rows, 1):
        if limit is not None and len(row) > limit:
            raise RegardError(
                f"Text {number} has {len(row)} tokens, and the model has learned {limit} positions.",
                fix="Cut it into shorter ones.",
            )
    device = next(model.parameters()).device
    with quiet(model), torch.inference_mode():
        for places in by_length([len(row) for row in rows], batch_tokens):
            some = [rows[place] for place in places]
            wide = max(map(len, some))
            padded = [row + [tokenizer.specials.pad] * (wide - len(row)) for row in some]
            lengths = torch.tensor([len(row) for row in some], device=device)
            real = torch.arange(wide, device=device) < lengths[:, None]  # (B, T)
            yield Answer(places, model(torch.tensor(padded, device=device), real).float())
