"""What else could stand at each place of a text, and how the text would go on from there."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.greedy import greedy
from regard.decode.protocol import S, Step, check_max_lengths
from regard.decode.topk import topk


@dataclass(frozen=True)
class Alternative:
    """A word that could stand at a place, and what the model would write after it."""

    token: int
    logprob: float
    """Its log-probability, given all that stands before."""
    continuation: tuple[int, ...]
    """What follows greedily, END included if it came; nothing after END and at the longest length."""
    continuation_logprobs: tuple[float, ...]
    """The log-probability of each token that follows."""


def alternatives(
    step: Step[S],
    state: S,
    prompt: Tensor,
    text: Sequence[int],
    *,
    eos: int,
    max_length: int,
    count: int = 5,
    positions: Sequence[int] | None = None,
    suppressed: Tensor | None = None,
) -> dict[int, list[Alternative]]:
    """For each of the `places` of a text (all of them: None), the `count` best words there, likeliest first.

    `first` (1, k) is what was read before the text; `text` its tokens as they were written, with or without END.
    The state must be fresh (nothing read): the text is read once, then taken back to each place (`crop`), and all
    texts are written on together, up to `longest` tokens in all. Words in `never` (n) are not written.
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
            f"No {count} alternatives at the places {sorted_positions} of {prompt.size(0)} text(s) of {len(text)} tokens.",
            fix="Give one text, a count of 1 or more, and places from 0 up to its last token.",
        )
    check_max_lengths([max_length - sorted_positions[-1]], 1)
    prefix = torch.tensor([list(text[: sorted_positions[-1]])], dtype=torch.long, device=prompt.device)  # (1, T)
    logits = step(torch.cat((prompt, prefix), dim=1), state)[0, prompt.size(1) - 1 :].float()  # (T + 1, V)
    logprobs = logits[sorted_positions].log_softmax(dim=1)  # (P, V)
    if suppressed is not None:
        logprobs = logprobs.index_fill(1, suppressed, float("-inf"))
    top_logprobs, top_tokens = topk(logprobs, min(count, logprobs.size(1)))  # (P, n)
    candidates = [
        (position, int(token), logprob)
        for position, position_tokens, position_logprobs in zip(
            sorted_positions, top_tokens.tolist(), top_logprobs.tolist(), strict=True
        )
        for token, logprob in zip(position_tokens, position_logprobs, strict=True)
        if logprob > float("-inf")
    ]
    open_candidates = [candidate for candidate in candidates if candidate[1] != eos and candidate[0] + 1 < max_length]
    continuations = dict(
        zip(
            open_candidates,
            _continue_greedily(step, state, prompt, open_candidates, eos, max_length, suppressed),
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
    max_length: int,
    suppressed: Tensor | None,
) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """What follows greedily on each (place, word)."""
    if not candidates:
        return []
    state.reorder(torch.zeros(len(candidates), dtype=torch.long, device=prompt.device))
    state.crop([prompt.size(1) + position for position, _, _ in candidates])
    tokens = torch.tensor([[token] for _, token, _ in candidates], device=prompt.device)  # (R, 1)
    max_lengths = [max_length - position - 1 for position, _, _ in candidates]
    hypotheses = greedy(step, state, tokens, eos=eos, max_lengths=max_lengths, suppressed=suppressed)
    return [(hypothesis.tokens, hypothesis.logprobs) for hypothesis in hypotheses]
