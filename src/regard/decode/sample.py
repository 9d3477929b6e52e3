"""Sampling: every token is drawn at random from the distribution that the filters leave.

`regard.decode.filters` describes the filters and their order. The same seed of the generator gives the same sequences.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.filters import Filters, Generators
from regard.decode.length_penalty import LengthPenalty
from regard.decode.protocol import NEG_INF, Hypothesis, S, Step, check_max_lengths, check_not_nan, make_hypothesis
from regard.decode.trace import SamplingTrace, SamplingTraceStep

SampledStep = list[tuple[int, float] | None]  # the token and log-probability of each row; None for finished rows


def iter_sample(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    eos: int,
    max_lengths: Sequence[int],
    generator: Generators,
    filters: Filters | None = None,
    suppress_tokens: Tensor | None = None,
    trace: SamplingTrace | None = None,
) -> Iterator[SampledStep]:
    """Sample token by token; each iteration yields one token of every unfinished row.

    Only the steps that the caller consumes are computed. See `regard.decode.protocol` for the arguments shared by all
    searches.

    Args:
        prompt: Tokens (R, k) that the model reads first. Filters that use the history also see these tokens.
        generator: Random number generator on the device of `prompt`, or one per row, which makes rows independent of
            each other.
        filters: Changes to the distribution before a token is drawn; None: no filters.
        trace: Records how every token was drawn; does not change the tokens.

    Yields:
        For each row its token and the log-probability that the model gives it before any filter.

    Raises:
        RegardError: The logits are NaN, or the filters leave no token.
    """
    filters = filters or Filters()
    check_max_lengths(max_lengths, prompt.size(0))
    rows = list(range(prompt.size(0)))  # the row of the prompt that each open row comes from
    tokens = history = prompt
    keeps_history = filters.needs_history or trace is not None
    if trace is not None:
        trace.rows = [[] for _ in rows]
    for position in range(max(max_lengths)):
        logprobs = step(tokens, state)[:, -1].float().log_softmax(dim=-1)  # (R, V)
        allowed = logprobs if suppress_tokens is None else logprobs.index_fill(1, suppress_tokens, NEG_INF)
        if filters.needs_history:
            allowed = filters.apply_penalties(allowed, history)
        if trace is None:
            open_generators = generator if isinstance(generator, torch.Generator) else [generator[row] for row in rows]
            tokens = filters.draw(allowed, open_generators)  # (R, 1)
        elif not isinstance(generator, torch.Generator):
            raise RegardError("Sampling with one generator per row cannot be traced.", hint="Pass one generator.")
        else:
            tokens = _draw_traced(trace, rows, filters, logprobs, allowed, history, generator)  # (R, 1)
        columns = (tokens.double(), logprobs.gather(1, tokens).double(), allowed.gather(1, tokens).double())
        values = torch.cat(columns, dim=1).tolist()  # the only synchronization with the device
        check_not_nan(logprob for _, logprob, _ in values)
        if any(allowed_logprob == NEG_INF for _, _, allowed_logprob in values):
            raise RegardError(
                "The filters leave no token to sample.",
                hint="Use a larger no_repeat_ngram, or suppress fewer tokens.",
            )
        sampled_step: SampledStep = [None] * prompt.size(0)
        kept_rows = []
        for index, (row, (token, logprob, _)) in enumerate(zip(rows, values, strict=True)):
            sampled_step[row] = (int(token), logprob)
            if token != eos and position + 1 < max_lengths[row]:
                kept_rows.append(index)
        yield sampled_step
        if not kept_rows:
            return
        if len(kept_rows) < len(rows):
            row_index = torch.tensor(kept_rows)
            state.reorder(row_index)
            row_index = row_index.to(prompt.device)
            tokens, history, rows = tokens[row_index], history[row_index], [rows[index] for index in kept_rows]
        if keeps_history:
            history = torch.cat((history, tokens), dim=1)  # (R, k + position + 1)


def _draw_traced(
    trace: SamplingTrace,
    rows: Sequence[int],
    filters: Filters,
    logprobs: Tensor,
    allowed: Tensor,
    history: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """Draw one token per row (R, 1) as `Filters.draw` does, and record the race of each row."""
    if filters.temperature == 0:
        winners = filters.draw(allowed, generator)  # (R, 1)
        tokens, probabilities, waiting_times = winners, torch.ones_like(winners, dtype=torch.float), allowed[:, :0]
    else:
        winners, tokens, probabilities, waiting_times = filters.race(allowed, generator)
    columns = [part.cpu().numpy() for part in (logprobs, allowed, tokens, probabilities, waiting_times)]
    for index, row in enumerate(rows):
        row_logprobs, row_allowed, row_tokens, row_probabilities, row_times = (column[index] for column in columns)
        trace.rows[row].append(
            SamplingTraceStep(
                row_logprobs,
                row_allowed,
                tuple(history[index].tolist()),
                row_tokens,
                row_probabilities,
                row_times,
                int(winners[index]),
            )
        )
    return winners


def sample(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    eos: int,
    max_lengths: Sequence[int],
    generator: Generators,
    filters: Filters | None = None,
    length_penalty: LengthPenalty = 1.0,
    suppress_tokens: Tensor | None = None,
    trace: SamplingTrace | None = None,
) -> list[Hypothesis]:
    """Sample one sequence per row; the arguments are those of `iter_sample`.

    `length_penalty` only normalizes the reported score.
    """
    steps = iter_sample(
        step,
        state,
        prompt,
        eos=eos,
        max_lengths=max_lengths,
        generator=generator,
        filters=filters,
        suppress_tokens=suppress_tokens,
        trace=trace,
    )
    sequences: list[list[tuple[int, float]]] = [[] for _ in max_lengths]
    for sampled_step in steps:
        for sequence, sampled_token in zip(sequences, sampled_step, strict=True):
            if sampled_token is not None:
                sequence.append(sampled_token)
    return [
        make_hypothesis([token for token, _ in sequence], [logprob for _, logprob in sequence], eos, length_penalty)
        for sequence in sequences
    ]
