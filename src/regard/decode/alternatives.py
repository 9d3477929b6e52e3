"""Alternatives: the likeliest tokens at each position of a sequence, each with its greedy continuation."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.greedy import greedy
from regard.decode.protocol import NEG_INF, S, Step, check_max_lengths
from regard.decode.topk import topk


@dataclass(frozen=True)
class Alternative:
    """A token that the model could generate at a position, and the greedy continuation after it."""

    token: int
    logprob: float
    """Its log-probability, given all tokens before it."""
    continuation: tuple[int, ...]
    """The tokens of greedy search after it, with eos if it was reached; empty after eos and at the maximum length."""
    continuation_logprobs: tuple[float, ...]
    """The log-probability of each token of the continuation."""


def alternatives(
    step: Step[S],
    state: S,
    prompt: Tensor,
    text: Sequence[int],
    *,
    eos: int,
    max_new_tokens: int,
    count: int = 5,
    positions: Sequence[int] | None = None,
    suppress_tokens: Tensor | None = None,
) -> dict[int, list[Alternative]]:
    """Return the `count` likeliest tokens at each position of a sequence, best first.

    The model reads the sequence once; its state is then cropped to each position, and greedy search continues all
    alternatives in one batch. See `regard.decode.protocol` for the arguments shared by all searches.

    Args:
        state: The model's state for one row that has read no tokens.
        prompt: Tokens (1, k) before the sequence.
        text: Token ids of the sequence, with or without eos.
        max_new_tokens: Maximum length of an alternative sequence, including the tokens before the position.
        count: Number of alternatives per position.
        positions: Positions in `text`; None: all.

    Returns:
        The alternatives by position.

    Raises:
        RegardError: There is not exactly one row, or `count`, `positions` or `max_new_tokens` is out of range.
    """
    sorted_positions = sorted(set(range(len(text)) if positions is None else positions))
    if (
        prompt.size(0) != 1
        or count < 1
        or not sorted_positions
        or sorted_positions[0] < 0
        or sorted_positions[-1] >= len(text)
    ):
        raise RegardError(
            f"Cannot find {count} alternatives at positions {sorted_positions}: "
            f"the prompt's batch size is {prompt.size(0)}, and the sequence has {len(text)} tokens.",
            hint="Use a batch of one, a count of at least 1, and positions from 0 to the last token.",
        )
    check_max_lengths([max_new_tokens - sorted_positions[-1]], 1)
    prefix = torch.tensor([list(text[: sorted_positions[-1]])], dtype=torch.long, device=prompt.device)  # (1, T)
    logits = step(torch.cat((prompt, prefix), dim=1), state)[0, prompt.size(1) - 1 :].float()  # (T + 1, V)
    logprobs = logits[sorted_positions].log_softmax(dim=1)  # (P, V)
    if suppress_tokens is not None:
        logprobs = logprobs.index_fill(1, suppress_tokens, NEG_INF)
    top_logprobs, top_tokens = topk(logprobs, min(count, logprobs.size(1)))  # (P, n)
    candidates = [
        (position, int(token), logprob)
        for position, position_tokens, position_logprobs in zip(
            sorted_positions, top_tokens.tolist(), top_logprobs.tolist(), strict=True
        )
        for token, logprob in zip(position_tokens, position_logprobs, strict=True)
        if logprob > NEG_INF
    ]
    open_candidates = [
        candidate for candidate in candidates if candidate[1] != eos and candidate[0] + 1 < max_new_tokens
    ]
    continuations = dict(
        zip(
            open_candidates,
            _continue_greedily(step, state, prompt, open_candidates, eos, max_new_tokens, suppress_tokens),
            strict=True,
        )
    )
    result: dict[int, list[Alternative]] = {position: [] for position in sorted_positions}
    for candidate in candidates:
        position, token, logprob = candidate
        tokens, continuation_logprobs = continuations.get(candidate, ((), ()))
        result[position].append(Alternative(token, logprob, tokens, continuation_logprobs))
    return result


def _continue_greedily(
    step: Step[S],
    state: S,
    prompt: Tensor,
    candidates: Sequence[tuple[int, int, float]],
    eos: int,
    max_new_tokens: int,
    suppress_tokens: Tensor | None,
) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """Return tokens and log-probabilities of the greedy continuation of each candidate (position, token, logprob)."""
    if not candidates:
        return []
    state.reorder(torch.zeros(len(candidates), dtype=torch.long))
    state.crop([prompt.size(1) + position for position, _, _ in candidates])
    tokens = torch.tensor([[token] for _, token, _ in candidates], device=prompt.device)  # (R, 1)
    max_lengths = [max_new_tokens - position - 1 for position, _, _ in candidates]
    hypotheses = greedy(
        step, state, tokens, eos=eos, max_lengths=max_lengths, suppress_tokens=suppress_tokens, must_remove_full=True
    )
    return [(hypothesis.tokens, hypothesis.logprobs) for hypothesis in hypotheses]
