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
from regard.decode.lengths import Alpha
from regard.decode.step import Hypothesis, S, State, Step, check_longest, hypothesis, not_a_number

D = TypeVar("D", bound=State)


@dataclass(frozen=True)
class Speculated:
    """Texts, and how well the draft did."""

    texts: list[Hypothesis]
    proposed: int
    """Tokens that the draft proposed, all rows together."""
    accepted: int
    """How many of them stand in the texts."""
    steps: int
    """How often the model was asked; alone it would be asked as often as the longest text has tokens."""

    @property
    def share(self) -> float:
        """Which part of the proposals was accepted."""
        return self.accepted / self.proposed if self.proposed else 0.0


def speculative(
    step: Step[S],
    state: S,
    draft_step: Step[D],
    draft_state: D,
    first: Tensor,
    *,
    end: int,
    longest: Sequence[int],
    generator: torch.Generator,
    ahead: int = 4,
    filters: Filters | None = None,
    alpha: Alpha = 1.0,
    never: Tensor | None = None,
) -> Speculated:
    """One text for each row of `first` (R, k), drawn as `regard.decode.sample` would; the draft is `ahead` by so many.

    Both states must be fresh (nothing read, no picture before the words): rows are cropped by their number of tokens.
    The filters act on both models; those that look back (`ngram`, `repetition`) are refused, for every proposal would
    have a past of its own. Near the end of the shortest text fewer tokens are proposed, so that no state must hold
    more than it would hold without a draft.
    """
    filters = filters or Filters()
    check_longest(longest, first.size(0))
    if ahead < 1:
        raise RegardError(f"A draft cannot be {ahead} tokens ahead.", fix="Use `ahead` of 1 or more.")
    if filters.look_back:
        raise RegardError("A draft does not know `ngram` and `repetition`.", fix="Sample without a draft.")
    rows = _Rows(end, longest, first)
    tokens, proposed, steps = first, 0, 0
    while True:
        count = min(ahead, rows.room() - 1)
        words, guesses = _proposed(draft_step, draft_state, tokens, count, filters, never, generator)
        logits = step(torch.cat((tokens, words), dim=1), state)[:, -count - 1 :].float()  # (R, count + 1, V)
        logs = logits.log_softmax(dim=2)
        p = _distribution(logs, filters, never)  # (R, count + 1, V)
        accepted = _accepted(p, guesses, words, generator)  # (R)
        last = _corrected(p, guesses, accepted, generator)  # (R, 1)
        chosen = torch.cat((words, last), dim=1).scatter(1, accepted[:, None], last)  # (R, count + 1)
        its_logs = logs.gather(2, chosen[:, :, None])[:, :, 0]
        stay = rows.write(chosen.tolist(), its_logs.tolist(), accepted.tolist())
        proposed, steps = proposed + count * len(accepted), steps + 1
        if not stay:
            break
        for one in (state, draft_state):
            if len(stay) < len(accepted):
                one.reorder(torch.tensor(stay, device=first.device))
            one.crop(rows.read())
        tokens = torch.tensor([[text[-1]] for text in rows.open_tokens()], device=first.device)  # (R, 1)
    texts = [hypothesis(tokens, logs, end, alpha) for tokens, logs in rows.finished]
    return Speculated(texts, proposed, rows.accepted, steps)


def _distribution(logs: Tensor, filters: Filters, never: Tensor | None) -> Tensor:
    """What is drawn from, (R, k, V) -> (R, k, V)."""
    if never is not None:
        logs = logs.index_fill(2, never, float("-inf"))
    return filters.probabilities(logs.flatten(0, 1)).unflatten(0, logs.shape[:2])


def _proposed(
    step: Step[Any],
    state: State,
    tokens: Tensor,
    count: int,
    filters: Filters,
    never: Tensor | None,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """The draft's words (R, count) and its distributions (R, count, V); it has read them all, the last one, too."""
    words, guesses = tokens[:, :0], []
    for _ in range(count):
        q = _distribution(step(tokens, state)[:, -1:].float(), filters, never)  # (R, 1, V)
        guesses.append(q)
        tokens = draw(q[:, 0], generator)  # (R, 1)
        words = torch.cat((words, tokens), dim=1)
    read = step(tokens, state)[:, -1:]  # both models have now read the same; only its shape is of use
    guesses.append(torch.zeros_like(read, dtype=torch.float))  # nothing was guessed behind the last word
    return words, torch.cat(guesses, dim=1)


def _accepted(p: Tensor, q: Tensor, words: Tensor, generator: torch.Generator) -> Tensor:
    """How many of the proposed words (R, count) are accepted before the first that is not, (R)."""
    count = words.size(1)
    likely, guessed = (part[:, :count].gather(2, words[:, :, None])[:, :, 0] for part in (p, q))  # (R, count)
    chance = 1 - torch.rand(likely.shape, generator=generator, device=likely.device)  # above 0, at most 1
    return (chance * guessed <= likely).long().cumprod(dim=1).sum(dim=1)


def _corrected(p: Tensor, q: Tensor, accepted: Tensor, generator: torch.Generator) -> Tensor:
    """The word behind those that were accepted, (R, 1): from max(0, p - q), or from p where nothing was guessed."""
    rows = torch.arange(p.size(0), device=p.device)
    its, guessed = p[rows, accepted], q[rows, accepted]  # (R, V)
    rest = (its - guessed).clamp(min=0)
    rest = torch.where(rest.sum(dim=1, keepdim=True) > 0, rest, its)  # p = q: refused by rounding only
    return draw(rest, generator)


class _Rows:
    """What is written of each text that is not finished; rows have lengths of their own."""

    def __init__(self, end: int, longest: Sequence[int], first: Tensor) -> None:
        self.end, self.longest, self.given = end, longest, first.size(1)
        self.texts: dict[int, tuple[list[int], list[float]]] = {row: ([], []) for row in range(first.size(0))}
        self.done: dict[int, tuple[list[int], list[float]]] = {}
        self.accepted = 0

    def room(self) -> int:
        """How many tokens all open texts may still have."""
        return min(self.longest[row] - len(tokens) for row, (tokens, _) in self.texts.items())

    def write(self, words: list[list[int]], logs: list[list[float]], accepted: list[int]) -> list[int]:
        """Add the accepted words of each row and the one behind them; comes back: which rows go on."""
        stay = []
        for place, (row, count) in enumerate(zip(list(self.texts), accepted, strict=True)):
            new = words[place][: count + 1]
            if self.end in new:
                new = new[: new.index(self.end) + 1]
            if any(log != log for log in logs[place][: len(new)]):  # NaN
                raise not_a_number()
            self.accepted += min(count, len(new))
            tokens, its_logs = self.texts[row]
            tokens += new
            its_logs += logs[place][: len(new)]
            if tokens[-1] == self.end or len(tokens) >= self.longest[row]:
                self.done[row] = self.texts.pop(row)
            else:
                stay.append(place)
        return stay

    def read(self) -> list[int]:
        """How much of each row must stay in the states: all but its last word."""
        return [self.given + len(tokens) - 1 for tokens, _ in self.texts.values()]

    def open_tokens(self) -> list[list[int]]:
        """What is written of each open row."""
        return [tokens for tokens, _ in self.texts.values()]

    @property
    def finished(self) -> list[tuple[list[int], list[float]]]:
        """All texts in the order of the rows."""
        return [self.done[row] for row in sorted(self.done)]
