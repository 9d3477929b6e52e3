"""Sampling: words are drawn, not chosen, from what the filters leave (`regard.decode.filters` tells their order).

What remains is drawn from in proportion to its probabilities, with the generator that is given: the same seed draws the
same text.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.filters import Filters
from regard.decode.length_penalty import LengthPenalty
from regard.decode.protocol import Hypothesis, S, Step, check_max_lengths, make_hypothesis, nan_error

NEG_INF = float("-inf")
SampledStep = list[tuple[int, float] | None]  # for each row its token and log-probability; None after its end


def iter_sample(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    eos: int,
    max_lengths: Sequence[int],
    generator: torch.Generator,
    filters: Filters | None = None,
    suppressed: Tensor | None = None,
) -> Iterator[SampledStep]:
    """Tokens as they are drawn, one step of all rows at a time.

    `first` (R, k) is what is read before anything is written. At most `longest` tokens of each row are written, END
    included; words in `never` (n) are not. The log-probabilities are the model's own, before any filter. Filters that
    look back see all that was read, `first` too. Stop asking, and nothing more is computed.
    """
    filters = filters or Filters()
    check_max_lengths(max_lengths, prompt.size(0))
    rows = list(range(prompt.size(0)))  # which text each row is
    tokens = history = prompt
    for position in range(max(max_lengths)):
        logprobs = step(tokens, state)[:, -1].float().log_softmax(dim=-1)  # (R, V)
        allowed = logprobs if suppressed is None else logprobs.index_fill(1, suppressed, NEG_INF)
        if filters.needs_history:
            allowed = filters.apply_penalties(allowed, history)
        tokens = filters.draw(allowed, generator)  # (R, 1)
        columns = (tokens.double(), logprobs.gather(1, tokens).double(), allowed.gather(1, tokens).double())
        values = torch.cat(columns, dim=1).tolist()  # the one wait for the device
        sampled_step: SampledStep = [None] * prompt.size(0)
        for row, (token, logprob, allowed_logprob) in zip(rows, values, strict=True):
            if logprob != logprob:  # NaN
                raise nan_error()
            if allowed_logprob == NEG_INF:
                raise RegardError("No word is left to be drawn.", fix="Use a longer ngram, or fewer words in `never`.")
            sampled_step[row] = (int(token), logprob)
        yield sampled_step
        kept_rows = [i for i, row in enumerate(rows) if values[i][0] != eos and position + 1 < max_lengths[row]]
        if not kept_rows:
            return
        if len(kept_rows) < len(rows):
            index = torch.tensor(kept_rows, device=prompt.device)
            state.reorder(index)
            tokens, history, rows = tokens[index], history[index], [rows[i] for i in kept_rows]
        if filters.needs_history:
            history = torch.cat((history, tokens), dim=1)  # (R, k + place + 1)


def sample(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    eos: int,
    max_lengths: Sequence[int],
    generator: torch.Generator,
    filters: Filters | None = None,
    length_penalty: LengthPenalty = 1.0,
    suppressed: Tensor | None = None,
) -> list[Hypothesis]:
    """One text for each row, drawn as `sampled` draws it."""
    steps = iter_sample(
        step,
        state,
        prompt,
        eos=eos,
        max_lengths=max_lengths,
        generator=generator,
        filters=filters,
        suppressed=suppressed,
    )
    texts: list[list[tuple[int, float]]] = [[] for _ in max_lengths]
    for sampled_step in steps:
        for text, sampled_token in zip(texts, sampled_step, strict=True):
            if sampled_token is not None:
                text.append(sampled_token)
    return [
        make_hypothesis([token for token, _ in text], [logprob for _, logprob in text], eos, length_penalty)
        for text in texts
    ]
