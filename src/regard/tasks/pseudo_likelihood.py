"""Pseudo-perplexity of a masked language model (Salazar et al. 2020).

Every token of a text is masked in turn, and the model predicts it from all others:

    pseudo-perplexity = exp(-1 / N sum_t log p(w_t | w_1 .. w_(t-1), w_(t+1) .. w_n))

A text of n tokens costs n forward passes over n tokens. cls and sep are read, but neither masked nor counted. Values
are only comparable between models with the same vocabulary, and not with perplexity, because a masked model sees both
sides.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.decode.protocol import nan_error
from regard.measure.likelihood import perplexity
from regard.models.cpu_decoder import eval_mode
from regard.tasks.encoding import add_special_tokens, check_list

if TYPE_CHECKING:
    from regard.tasks.masked_lm import FillMask

WINDOW = 128  # tokens of a long text to read at once; the cost is quadratic
SPECIAL_TOKENS = 2  # cls and sep


@dataclass(frozen=True)
class PseudoLikelihood:
    """Pseudo-likelihood of texts under a masked language model."""

    tokens: int
    pseudo_perplexity: float
    accuracy: float
    """Fraction of masked tokens that are the model's most probable token, from 0 to 1."""
    logprobs: tuple[tuple[float, ...], ...]
    """Log-probability of each token of each text, masked in turn."""


def pseudo_likelihood(
    fill_mask: "FillMask",
    texts: Sequence[str],
    *,
    window: int | None = None,
    batch_tokens: int = 8192,
    report: Callable[[int], None] = lambda _: None,
) -> PseudoLikelihood:
    """Compute the pseudo-perplexity of texts.

    Args:
        fill_mask: The masked language model.
        texts: The texts; one longer than `window` tokens is read in parts of this length.
        window: Tokens per part. Default: 128, at most the number of learned positions.
        batch_tokens: Maximum number of tokens in a batch.
        report: Called after each batch with the number of scored tokens.

    Raises:
        RegardError: If the window does not fit the model, or no text has a token.
    """
    check_list(texts, "text", "pseudo_likelihood")
    size = _choose_window(fill_mask, window)
    tokenizer, model = fill_mask.tokenizers.source, fill_mask.model
    encoded = tokenizer.encode_ids(list(texts))
    logprobs = [[0.0] * len(ids) for ids in encoded]
    # By part length: the text, the start of the part, and the position of the masked token in it.
    masked_tokens: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for index, ids in enumerate(encoded):
        for start in range(0, len(ids), size):
            length = min(size, len(ids) - start)
            masked_tokens[length] += [(index, start, position) for position in range(length)]
    device, correct = next(model.parameters()).device, 0
    with eval_mode(model, bypasses=("forward",)), torch.inference_mode():
        for length in sorted(masked_tokens):  # rows of one length need no padding
            batch_size = max(1, batch_tokens // (length + SPECIAL_TOKENS))
            for first in range(0, len(masked_tokens[length]), batch_size):
                group = masked_tokens[length][first : first + batch_size]
                parts = [encoded[index][start : start + length] for index, start, _ in group]
                rows = torch.tensor([add_special_tokens(tokenizer, part) for part in parts], device=device)  # (B, T)
                row_numbers = torch.arange(len(group), device=device)
                positions = torch.tensor([1 + position for _, _, position in group], device=device)
                labels = rows[row_numbers, positions]  # (B)
                rows[row_numbers, positions] = tokenizer.specials.mask
                states = model.hidden_states(rows)[0][row_numbers, positions]  # (B, D): only these need logits
                logits = model.head(states[None])[0].float()  # (B, V)
                if logits.isnan().any():
                    raise nan_error()
                correct += int((logits.argmax(dim=-1) == labels).sum())
                label_logprobs = logits.log_softmax(dim=-1)[row_numbers, labels].tolist()
                for (index, start, position), logprob in zip(group, label_logprobs, strict=True):
                    logprobs[index][start + position] = logprob
                report(len(group))
    count = sum(len(ids) for ids in encoded)
    value = perplexity(-sum(map(sum, logprobs)), count)
    return PseudoLikelihood(count, value, correct / count, tuple(map(tuple, logprobs)))


def _choose_window(fill_mask: "FillMask", window: int | None) -> int:
    limit = fill_mask.settings.encoder.max_positions
    upper_bound = None if limit is None else limit - SPECIAL_TOKENS
    size = window or min(WINDOW, upper_bound or WINDOW)
    if size < 2 or (upper_bound is not None and size > upper_bound):
        text = "" if upper_bound is None else f" and at most {upper_bound}, the learned positions without cls and sep"
        raise RegardError(f"A window cannot have {pluralize(size, 'token')}.", hint=f"Use at least 2 tokens{text}.")
    return size
