"""Speculative sampling: a quick model proposes, the slow one checks many proposals at once (Leviathan et al. 2023).

Reading k tokens costs a large model little more than reading one. So a small one, the draft, draws x_1 ... x_k, and the
model reads them all in one step. With the model's distribution p and the draft's q at each place, in order:

    x_i is accepted with probability min(1, p(x_i) / q(x_i));
    at the first that is refused, a word is drawn from max(0, p - q) instead, made to sum to 1; the rest is taken back;
    if all are accepted, one word more is drawn from p: the model has computed it anyway.

Every word is then distributed exactly as if the model had drawn it alone, whatever the draft is; a good draft only
makes it quicker. With temperature 0 both distributions are on one word: the text is that of greedy search.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.filters import Filters, draw
from regard.decode.length_penalty import LengthPenalty
from regard.decode.protocol import Hypothesis, S, State, Step, check_max_lengths, make_hypothesis, nan_error

D = TypeVar("D", bound=State)


@dataclass(frozen=True)
class SpeculativeResult:
    """Texts, and how well the draft did."""

    hypotheses: list[Hypothesis]
    proposed: int
    """Tokens that the draft proposed, all rows together."""
    accepted: int
    """How many of them stand in the texts."""
    steps: int
    """How often the model was asked; alone it would be asked as often as the longest text has tokens."""

    @property
    def acceptance_rate(self) -> float:
        """Which part of the proposals was accepted."""
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
    suppressed: Tensor | None = None,
) -> SpeculativeResult:
    """One text for each row of `first` (R, k), drawn as `regard.decode.sample` would; the draft is `ahead` by so many.

    Both states must be fresh (nothing read, no picture before the words): rows are cropped by their number of tokens.
    The filters act on both models; those that look back (`ngram`, `repetition`) are refused, for every proposal would
    have a past of its own. Near the end of the shortest text fewer tokens are proposed, so that no state must hold
    more than it would hold without a draft.
    """
    filters = filters or Filters()
    check_max_lengths(max_lengths, prompt.size(0))
    if draft_length < 1:
        raise RegardError(f"A draft cannot be {draft_length} tokens ahead.", fix="Use `ahead` of 1 or more.")
    if filters.needs_history:
        raise RegardError("A draft does not know `ngram` and `repetition`.", fix="Sample without a draft.")
    rows = _SpeculativeRows(eos, max_lengths, prompt)
    tokens, proposed, steps = prompt, 0, 0
    while True:
        count = min(draft_length, rows.count_remaining() - 1)
        draft_tokens, draft_probabilities = _propose(
            draft_step, draft_state, tokens, count, filters, suppressed, generator
        )
        logits = step(torch.cat((tokens, draft_tokens), dim=1), state)[:, -count - 1 :].float()  # (R, count + 1, V)
        logprobs = logits.log_softmax(dim=2)
        p = _sampling_distribution(logprobs, filters, suppressed)  # (R, count + 1, V)
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
                model_state.reorder(torch.tensor(kept_rows, device=prompt.device))
            model_state.crop(rows.count_cached())
        tokens = torch.tensor([[text[-1]] for text in rows.open_tokens()], device=prompt.device)  # (R, 1)
    hypotheses = [make_hypothesis(tokens, logprobs, eos, length_penalty) for tokens, logprobs in rows.finished]
    return SpeculativeResult(hypotheses, proposed, rows.accepted_count, steps)


def _sampling_distribution(logprobs: Tensor, filters: Filters, suppressed: Tensor | None) -> Tensor:
    """What is drawn from, (R, k, V) -> (R, k, V)."""
    if suppressed is not None:
        logprobs = logprobs.index_fill(2, suppressed, float("-inf"))
    return filters.probabilities(logprobs.flatten(0, 1)).unflatten(0, logprobs.shape[:2])


def _propose(
    step: Step[Any],
    state: State,
    tokens: Tensor,
    count: int,
    filters: Filters,
    suppressed: Tensor | None,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """The draft's words (R, count) and its distributions (R, count, V); it has read them all, the last one, too."""
    draft_tokens, draft_probabilities = tokens[:, :0], []
    for _ in range(count):
        q = _sampling_distribution(step(tokens, state)[:, -1:].float(), filters, suppressed)  # (R, 1, V)
        draft_probabilities.append(q)
        tokens = draw(q[:, 0], generator)  # (R, 1)
        draft_tokens = torch.cat((draft_tokens, tokens), dim=1)
    last_logits = step(tokens, state)[:, -1:]  # both models have now read the same; only its shape is of use
    draft_probabilities.append(
        torch.zeros_like(last_logits, dtype=torch.float)
    )  # nothing was guessed behind the last word
    return draft_tokens, torch.cat(draft_probabilities, dim=1)


def _count_accepted(p: Tensor, q: Tensor, draft_tokens: Tensor, generator: torch.Generator) -> Tensor:
    """How many of the proposed words (R, count) are accepted before the first that is not, (R)."""
    count = draft_tokens.size(1)
    p_tokens, q_tokens = (
        probabilities[:, :count].gather(2, draft_tokens[:, :, None])[:, :, 0] for probabilities in (p, q)
    )  # (R, count)
    uniform = 1 - torch.rand(p_tokens.shape, generator=generator, device=p_tokens.device)  # above 0, at most 1
    return (uniform * q_tokens <= p_tokens).long().cumprod(dim=1).sum(dim=1)


def _sample_correction(p: Tensor, q: Tensor, accepted_counts: Tensor, generator: torch.Generator) -> Tensor:
    """The word behind those that were accepted, (R, 1): from max(0, p - q), or from p where nothing was guessed."""
    rows = torch.arange(p.size(0), device=p.device)
    p_rows, q_rows = p[rows, accepted_counts], q[rows, accepted_counts]  # (R, V)
    residual = (p_rows - q_rows).clamp(min=0)
    residual = torch.where(residual.sum(dim=1, keepdim=True) > 0, residual, p_rows)  # p = q: refused by rounding only
    return draw(residual, generator)


class _SpeculativeRows:
    """What is written of each text that is not finished; rows have lengths of their own."""

    def __init__(self, eos: int, max_lengths: Sequence[int], prompt: Tensor) -> None:
        self.eos, self.max_lengths, self.prompt_length = eos, max_lengths, prompt.size(1)
        self.open_rows: dict[int, tuple[list[int], list[float]]] = {row: ([], []) for row in range(prompt.size(0))}
        self.finished_rows: dict[int, tuple[list[int], list[float]]] = {}
        self.accepted_count = 0

    def count_remaining(self) -> int:
        """How many tokens all open texts may still have."""
        return min(self.max_lengths[row] - len(tokens) for row, (tokens, _) in self.open_rows.items())

    def append(
        self, chosen_tokens: list[list[int]], chosen_logprobs: list[list[float]], accepted_counts: list[int]
    ) -> list[int]:
        """Add the accepted words of each row and the one behind them; comes back: which rows go on."""
        kept_rows = []
        for i, (row, count) in enumerate(zip(list(self.open_rows), accepted_counts, strict=True)):
            new_tokens = chosen_tokens[i][: count + 1]
            if self.eos in new_tokens:
                new_tokens = new_tokens[: new_tokens.index(self.eos) + 1]
            if any(logprob != logprob for logprob in chosen_logprobs[i][: len(new_tokens)]):  # NaN
                raise nan_error()
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
        """How much of each row must stay in the states: all but its last word."""
        return [self.prompt_length + len(tokens) - 1 for tokens, _ in self.open_rows.values()]

    def open_tokens(self) -> list[list[int]]:
        """What is written of each open row."""
        return [tokens for tokens, _ in self.open_rows.values()]

    @property
    def finished(self) -> list[tuple[list[int], list[float]]]:
        """All texts in the order of the rows."""
        return [self.finished_rows[row] for row in sorted(self.finished_rows)]
