"""Greedy search: at every step the likeliest word."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decode.step import Hypothesis, S, Step, check_longest, hypothesis
from regard.decode.top import first as likeliest

LEAVE = 8  # finished rows leave when they are an eighth: each leaving copies what stays


def greedy(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    end: int,
    longest: Sequence[int],
    alpha: float = 1.0,
    never: Tensor | None = None,
) -> list[Hypothesis]:
    """One hypothesis for each row.

    `first` (R, k) is what is read before anything is written: [begin], or [begin] and a prefix. At most `longest`
    tokens of each row are written, END included. Words in `never` (n) are not written; what the model thinks of the
    others stays as it is. Equal words: the lowest number wins. `alpha` only normalises the score that is told.
    """
    rows = first.size(0)
    check_longest(longest, rows)
    limits = torch.tensor(longest, device=first.device)  # (R)
    words = first.new_full((rows, max(longest)), end)  # all that is written, in the order of the sentences
    logs = torch.zeros(words.shape, device=first.device)
    index = torch.arange(rows, device=first.device)  # (R) the sentence of each row
    done = torch.zeros(rows, dtype=torch.bool, device=first.device)
    tokens = first
    for place in range(max(longest)):
        log_probabilities = step(tokens, state)[:, -1].float().log_softmax(dim=-1)  # (R, V)
        if never is not None:
            log_probabilities.index_fill_(1, never, float("-inf"))
        tokens = likeliest(log_probabilities)  # (R, 1)
        words[index, place] = tokens[:, 0]
        logs[index, place] = log_probabilities.gather(1, tokens)[:, 0]
        done |= (tokens[:, 0] == end) | (limits <= place + 1)
        finished = done.tolist()  # the one wait for the device
        if all(finished):
            break
        if sum(finished) * LEAVE >= len(finished):
            stay = torch.tensor([row for row, over in enumerate(finished) if not over], device=first.device)
            state.reorder(stay)
            index, limits, done, tokens = index[stay], limits[stay], done[stay], tokens[stay]
    return [
        _cut(row, row_logs, end, limit, alpha)
        for row, row_logs, limit in zip(words.tolist(), logs.tolist(), longest, strict=True)
    ]


def _cut(tokens: list[int], logs: list[float], end: int, limit: int, alpha: float) -> Hypothesis:
    """What was written up to END or the limit; rows that wait to leave the batch write on behind it."""
    size = tokens.index(end) + 1 if end in tokens[:limit] else limit
    return hypothesis(tokens[:size], logs[:size], end, alpha)
