"""Sampling: words are drawn, not chosen, from what the filters leave (`regard.decode.filters` tells their order).

What remains is drawn from in proportion to its probabilities, with the generator that is given: the same seed draws the
same text.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.filters import Filters
from regard.decode.lengths import Alpha
from regard.decode.step import Hypothesis, S, Step, check_longest, hypothesis, not_a_number

NOTHING = float("-inf")
Written = list[tuple[int, float] | None]  # for each row its token and log-probability; None after its end


def sampled(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    end: int,
    longest: Sequence[int],
    generator: torch.Generator,
    filters: Filters | None = None,
    never: Tensor | None = None,
) -> Iterator[Written]:
    """Tokens as they are drawn, one step of all rows at a time.

    `first` (R, k) is what is read before anything is written. At most `longest` tokens of each row are written, END
    included; words in `never` (n) are not. The log-probabilities are the model's own, before any filter. Filters that
    look back see all that was read, `first` too. Stop asking, and nothing more is computed.
    """
    filters = filters or Filters()
    check_longest(longest, first.size(0))
    rows = list(range(first.size(0)))  # which text each row is
    tokens = history = first
    for place in range(max(longest)):
        logs = step(tokens, state)[:, -1].float().log_softmax(dim=-1)  # (R, V)
        allowed = logs if never is None else logs.index_fill(1, never, NOTHING)
        if filters.look_back:
            allowed = filters.penalised(allowed, history)
        tokens = filters.draw(allowed, generator)  # (R, 1)
        chosen = (tokens.double(), logs.gather(1, tokens).double(), allowed.gather(1, tokens).double())
        facts = torch.cat(chosen, dim=1).tolist()  # the one wait for the device
        written: Written = [None] * first.size(0)
        for row, (token, log, left) in zip(rows, facts, strict=True):
            if log != log:  # NaN
                raise not_a_number()
            if left == NOTHING:
                raise RegardError("No word is left to be drawn.", fix="Use a longer ngram, or fewer words in `never`.")
            written[row] = (int(token), log)
        yield written
        stay = [n for n, row in enumerate(rows) if facts[n][0] != end and place + 1 < longest[row]]
        if not stay:
            return
        if len(stay) < len(rows):
            index = torch.tensor(stay, device=first.device)
            state.reorder(index)
            tokens, history, rows = tokens[index], history[index], [rows[n] for n in stay]
        if filters.look_back:
            history = torch.cat((history, tokens), dim=1)  # (R, k + place + 1)


def sample(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    end: int,
    longest: Sequence[int],
    generator: torch.Generator,
    filters: Filters | None = None,
    alpha: Alpha = 1.0,
    never: Tensor | None = None,
) -> list[Hypothesis]:
    """One text for each row, drawn as `sampled` draws it."""
    steps = sampled(step, state, first, end=end, longest=longest, generator=generator, filters=filters, never=never)
    texts: list[list[tuple[int, float]]] = [[] for _ in longest]
    for written in steps:
        for text, new in zip(texts, written, strict=True):
            if new is not None:
                text.append(new)
    return [hypothesis([token for token, _ in text], [log for _, log in text], end, alpha) for text in texts]
