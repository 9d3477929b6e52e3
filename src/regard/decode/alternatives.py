"""What else could stand at each place of a text, and how the text would go on from there."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.greedy import greedy
from regard.decode.step import S, Step, check_longest
from regard.decode.top import top


@dataclass(frozen=True)
class Alternative:
    """A word that could stand at a place, and what the model would write after it."""

    token: int
    log: float
    """Its log-probability, given all that stands before."""
    goes_on: tuple[int, ...]
    """What follows greedily, END included if it came; nothing after END and at the longest length."""
    logs: tuple[float, ...]
    """The log-probability of each token that follows."""


def alternatives(
    step: Step[S],
    state: S,
    first: Tensor,
    text: Sequence[int],
    *,
    end: int,
    longest: int,
    count: int = 5,
    places: Sequence[int] | None = None,
    never: Tensor | None = None,
) -> dict[int, list[Alternative]]:
    """For each of the `places` of a text (all of them: None), the `count` best words there, likeliest first.

    `first` (1, k) is what was read before the text; `text` its tokens as they were written, with or without END.
    The state must be fresh (nothing read): the text is read once, then taken back to each place (`crop`), and all
    texts are written on together, up to `longest` tokens in all. Words in `never` (n) are not written.
    """
    wanted = sorted(set(range(len(text)) if places is None else places))
    if first.size(0) != 1 or count < 1 or not wanted or wanted[0] < 0 or wanted[-1] >= len(text):
        raise RegardError(
            f"No {count} alternatives at the places {wanted} of {first.size(0)} text(s) of {len(text)} tokens.",
            fix="Give one text, a count of 1 or more, and places from 0 up to its last token.",
        )
    check_longest([longest - wanted[-1]], 1)
    before = torch.tensor([list(text[: wanted[-1]])], dtype=torch.long, device=first.device)  # (1, T)
    logits = step(torch.cat((first, before), dim=1), state)[0, first.size(1) - 1 :].float()  # (T + 1, V)
    logs = logits[wanted].log_softmax(dim=1)  # (P, V)
    if never is not None:
        logs = logs.index_fill(1, never, float("-inf"))
    values, words = top(logs, min(count, logs.size(1)))  # (P, n)
    best = [
        (place, int(word), value)
        for place, its_words, its_values in zip(wanted, words.tolist(), values.tolist(), strict=True)
        for word, value in zip(its_words, its_values, strict=True)
        if value > float("-inf")
    ]
    going_on = [one for one in best if one[1] != end and one[0] + 1 < longest]
    rest = dict(zip(going_on, _written_on(step, state, first, going_on, end, longest, never), strict=True))
    found: dict[int, list[Alternative]] = {place: [] for place in wanted}
    for one in best:
        place, word, value = one
        tokens, its_logs = rest.get(one, ((), ()))
        found[place].append(Alternative(word, value, tokens, its_logs))
    return found


def _written_on(
    step: Step[S],
    state: S,
    first: Tensor,
    beginnings: Sequence[tuple[int, int, float]],
    end: int,
    longest: int,
    never: Tensor | None,
) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """What follows greedily on each (place, word)."""
    if not beginnings:
        return []
    state.reorder(torch.zeros(len(beginnings), dtype=torch.long, device=first.device))
    state.crop([first.size(1) + place for place, _, _ in beginnings])
    words = torch.tensor([[word] for _, word, _ in beginnings], device=first.device)  # (R, 1)
    room = [longest - place - 1 for place, _, _ in beginnings]
    texts = greedy(step, state, words, end=end, longest=room, never=never)
    return [(text.tokens, text.logs) for text in texts]
