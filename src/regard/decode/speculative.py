"""Speculative sampling: a draft model proposes tokens, the model verifies several at once (Leviathan et al. 2023).

Reading k tokens costs a large model little more than reading one. So a small model, the draft, samples x_1 ... x_k, and
the model reads all of them in one step. With the model's distribution p and the draft's q at each position, in order:

    x_i is accepted with probability min(1, p(x_i) / q(x_i));
    at the first rejection, a token is sampled from max(0, p - q), normalized, and the remaining proposals are removed;
    if all are accepted, one more token is sampled from p, which the model has already computed.

Every token then has exactly the same distribution as when sampling from the model alone; a better draft only makes it
faster. At temperature 0 the result equals greedy search.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.filters import Filters, draw
from regard.decode.length_penalty import LengthPenalty
from regard.decode.protocol import (
    NEG_INF,
    Hypothesis,
    S,
    State,
    Step,
    check_max_lengths,
    check_not_nan,
    make_hypothesis,
)

D = TypeVar("D", bound=State)


@dataclass(frozen=True)
class SpeculativeResult:
    """Hypotheses, and how many of the draft's tokens the model accepted."""

    hypotheses: list[Hypothesis]
    proposed: int
    """Number of tokens that the draft proposed, over all rows."""
    accepted: int
    """Number of proposed tokens that are part of the hypotheses."""
    steps: int
    """Number of the model's steps; without a draft there is one per token of the longest hypothesis."""

    @property
    def acceptance_rate(self) -> float:
        """The fraction of the proposed tokens that was accepted."""
        return self.accepted / self.proposed if self.proposed else 0.0


def speculative(
    step: Step[S],
    state: S,
    draft_step: Step[D],
    draft_state: D,
    prompt: Tensor,
    *,
    eos: int,
    max_lengths: Sequence[int],
    generator: torch.Generator,
    draft_length: int = 4,
    filters: Filters | None = None,
    length_penalty: LengthPenalty = 1.0,
    suppress_tokens: Tensor | None = None,
) -> SpeculativeResult:
    """Sample one sequence per row of `prompt` (R, k), with the distribution of `regard.decode.sample`.

    Both states must be empty (no tokens read, no image before the tokens): rows are cropped by their number of tokens.
    Near the maximum length fewer tokens are proposed, so states do not need extra capacity. See
    `regard.decode.protocol` for the arguments shared by all searches.

    Args:
        draft_step: The draft model, with the same vocabulary.
        draft_state: Its state for R rows.
        draft_length: Number of tokens that the draft proposes per step of the model.
        filters: Act on both models. Filters that need the history (`no_repeat_ngram`, `repetition_penalty`) are not
            supported, because every proposal would have a different history.
    """
    filters = filters or Filters()
    check_max_lengths(max_lengths, prompt.size(0))
    if draft_length < 1:
        raise RegardError(f"draft_length must be at least 1, got {draft_length}.", hint="Propose at least one token.")
    if filters.needs_history:
        raise RegardError(
            "Speculative sampling does not support no_repeat_ngram and repetition_penalty.",
            hint="Sample without a draft, or leave these filters out.",
        )
    rows = _SpeculativeRows(eos, max_lengths, prompt)
    tokens, proposed, steps = prompt, 0, 0
    while True:
        count = min(draft_length, rows.count_remaining() - 1)
        draft_tokens, draft_probabilities = _propose(
            draft_step, draft_state, tokens, count, filters, suppress_tokens, generator
        )
        logits = step(torch.cat((tokens, draft_tokens), dim=1), state)[:, -count - 1 :].float()  # (R, count + 1, V)
        logprobs = logits.log_softmax(dim=2)
        p = _sampling_distribution(logprobs, filters, suppress_tokens)  # (R, count + 1, V)
        accepted_counts = _count_accepted(p, draft_probabilities, draft_tokens, generator)  # (R)
        next_tokens = _sample_correction(p, draft_probabilities, accepted_counts, generator)  # (R, 1)
        chosen_tokens = torch.cat((draft_tokens, next_tokens), dim=1).scatter(
            1, accepted_counts[:, None], next_tokens
        )  # (R, count + 1)
        chosen_logprobs = logprobs.gather(2, chosen_tokens[:, :, None])[:, :, 0]
        kept_rows = rows.append(chosen_tokens.tolist(), chosen_logprobs.tolist(), accepted_counts.tolist())
        proposed, steps = proposed + count * len(accepted_counts), steps + 1
        if not kept_rows:
            break
        for model_state in (state, draft_state):
            if len(kept_rows) < len(accepted_counts):
                model_state.reorder(torch.tensor(kept_rows))
            model_state.crop(rows.count_cached())
        tokens = torch.tensor([[sequence[-1]] for sequence in rows.open_tokens()], device=prompt.device)  # (R, 1)
    hypotheses = [make_hypothesis(tokens, logprobs, eos, length_penalty) for tokens, logprobs in rows.finished]
    return SpeculativeResult(hypotheses, proposed, rows.accepted_count, steps)


def _sampling_distribution(logprobs: Tensor, filters: Filters, suppress_tokens: Tensor | None) -> Tensor:
    """Return the distributions to sample from, (R, k, V) -> (R, k, V)."""
    if suppress_tokens is not None:
        logprobs = logprobs.index_fill(2, suppress_tokens, NEG_INF)
    return filters.probabilities(logprobs.flatten(0, 1)).unflatten(0, logprobs.shape[:2])


def _propose(
    step: Step[Any],
    state: State,
    tokens: Tensor,
    count: int,
    filters: Filters,
    suppress_tokens: Tensor | None,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Return the draft's tokens (R, count) and distributions (R, count + 1, V); the draft reads all its tokens."""
    draft_tokens, draft_probabilities = tokens[:, :0], []
    for _ in range(count):
        q = _sampling_distribution(step(tokens, state)[:, -1:].float(), filters, suppress_tokens)  # (R, 1, V)
        draft_probabilities.append(q)
        tokens = draw(q[:, 0], generator)  # (R, 1)
        draft_tokens = torch.cat((draft_tokens, tokens), dim=1)
    last_logits = step(tokens, state)[
        :, -1:
    ]  # the draft reads its last token, as the model will; only the shape is used
    draft_probabilities.append(torch.zeros_like(last_logits, dtype=torch.float))  # no proposal after the last token
    return draft_tokens, torch.cat(draft_probabilities, dim=1)


def _count_accepted(p: Tensor, q: Tensor, draft_tokens: Tensor, generator: torch.Generator) -> Tensor:
    """Count the accepted tokens of each row before the first rejected one, (R, count) -> (R)."""
    count = draft_tokens.size(1)
    p_tokens, q_tokens = (
        probabilities[:, :count].gather(2, draft_tokens[:, :, None])[:, :, 0] for probabilities in (p, q)
    )  # (R, count)
    uniform = 1 - torch.rand(p_tokens.shape, generator=generator, device=p_tokens.device)  # above 0, at most 1
    return (uniform * q_tokens <= p_tokens).long().cumprod(dim=1).sum(dim=1)


def _sample_correction(p: Tensor, q: Tensor, accepted_counts: Tensor, generator: torch.Generator) -> Tensor:
    """Sample the token after the accepted ones, (R, 1): from max(0, p - q), or from p where there is no proposal."""
    rows = torch.arange(p.size(0), device=p.device)
    p_rows, q_rows = p[rows, accepted_counts], q[rows, accepted_counts]  # (R, V)
    residual = (p_rows - q_rows).clamp(min=0)
    residual = torch.where(residual.sum(dim=1, keepdim=True) > 0, residual, p_rows)  # p = q: rejected by rounding only
    return draw(residual, generator)


class _SpeculativeRows:
    """The tokens of every row; rows differ in length."""

    def __init__(self, eos: int, max_lengths: Sequence[int], prompt: Tensor) -> None:
        self.eos, self.max_lengths, self.prompt_length = eos, max_lengths, prompt.size(1)
        self.open_rows: dict[int, tuple[list[int], list[float]]] = {row: ([], []) for row in range(prompt.size(0))}
        self.finished_rows: dict[int, tuple[list[int], list[float]]] = {}
        self.accepted_count = 0

    def count_remaining(self) -> int:
        """Return the number of tokens that every open row may still generate."""
        return min(self.max_lengths[row] - len(tokens) for row, (tokens, _) in self.open_rows.items())

    def append(
        self, chosen_tokens: list[list[int]], chosen_logprobs: list[list[float]], accepted_counts: list[int]
    ) -> list[int]:
        """Append the accepted tokens of each row and the one after them; return the rows that stay open."""
        kept_rows = []
        for i, (row, count) in enumerate(zip(list(self.open_rows), accepted_counts, strict=True)):
            new_tokens = chosen_tokens[i][: count + 1]
            if self.eos in new_tokens:
                new_tokens = new_tokens[: new_tokens.index(self.eos) + 1]
            check_not_nan(chosen_logprobs[i][: len(new_tokens)])
            self.accepted_count += min(count, len(new_tokens))
            tokens, logprobs = self.open_rows[row]
            tokens += new_tokens
            logprobs += chosen_logprobs[i][: len(new_tokens)]
            if tokens[-1] == self.eos or len(tokens) >= self.max_lengths[row]:
                self.finished_rows[row] = self.open_rows.pop(row)
            else:
                kept_rows.append(i)
        return kept_rows

    def count_cached(self) -> list[int]:
        """Return the number of tokens of each open row that stay in the states: all but the last."""
        return [self.prompt_length + len(tokens) - 1 for tokens, _ in self.open_rows.values()]

    def open_tokens(self) -> list[list[int]]:
        """Return the generated tokens of each open row."""
        return [tokens for tokens, _ in self.open_rows.values()]

    @property
    def finished(self) -> list[tuple[list[int], list[float]]]:
        """Tokens and log-probabilities of all rows, in order."""
        return [self.finished_rows[row] for row in sorted(self.finished_rows)]
