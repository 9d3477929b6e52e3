"""Greedy search: at every step the likeliest word."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.decode.lengths import Alpha
from regard.decode.rows import Flags, Logs, Numbers, closed_up, on_host
from regard.decode.step import Hypothesis, S, Step, check_longest, hypothesis
from regard.decode.top import best
from regard.decode.trace import DROPPED, FINISHED, OPEN, Trace

LEAVE = 8  # finished rows leave when they are an eighth: each leaving moves others into their places


def greedy(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    end: int,
    longest: Sequence[int],
    alpha: Alpha = 1.0,
    never: Tensor | None = None,
    trace: Trace | None = None,
) -> list[Hypothesis]:
    """One hypothesis for each row.

    `first` (R, k) is what is read before anything is written: [begin], or [begin] and a prefix. At most `longest`
    tokens of each row are written, END included. Words in `never` (n) are not written; what the model thinks of the
    others stays as it is. Equal words: the lowest number wins. `alpha` only normalises the score that is told. A
    `trace` is told the best words of every step.
    """
    check_longest(longest, first.size(0))
    limits = np.array(longest)
    words = np.full((limits.size, max(longest)), end)  # all that is written, in the order of the sentences
    logs = np.zeros(words.shape)
    rows = np.arange(limits.size)  # (R) the sentence of each row
    done = np.zeros(limits.size, np.bool_)  # (R)
    path = _Path(trace, alpha, limits.size) if trace is not None else None
    tokens = first
    for place in range(1, max(longest) + 1):
        logits = step(tokens, state)[:, -1].float()  # (R, V)
        shown = None if trace is None else on_host(*best(logits.clone(), min(trace.shown, logits.size(1)), never))
        found, tokens = best(logits, 1, never)  # (R, 1)
        new_logs, new = on_host(found, tokens)  # (R, 1), the one wait for the device
        words[rows, place - 1], logs[rows, place - 1] = new[:, 0], new_logs[:, 0]
        over = (new[:, 0] == end) | (limits[rows] <= place)
        if path is not None and shown is not None:
            path.extend(np.where(done, -1, rows), over, new[:, 0], new_logs[:, 0], *shown)
        done |= over
        if done.all():
            break
        if done.sum() * LEAVE >= done.size:
            index = closed_up(~done)
            chosen = torch.from_numpy(index)
            state.reorder(chosen)
            rows, done, tokens = rows[index], done[index], tokens[chosen.to(first.device)]
    return [
        _cut(text, its, end, limit, alpha)
        for text, its, limit in zip(words.tolist(), logs.tolist(), longest, strict=True)
    ]


def _cut(tokens: list[int], logs: list[float], end: int, limit: int, alpha: Alpha) -> Hypothesis:
    """What was written up to END or the limit; rows that wait to leave the batch write on behind it."""
    size = tokens.index(end) + 1 if end in tokens[:limit] else limit
    return hypothesis(tokens[:size], logs[:size], end, alpha)


class _Path:
    """Greedy search as a trace sees it: one open candidate for each sentence."""

    def __init__(self, trace: Trace, alpha: Alpha, sentences: int) -> None:
        self.trace, self.alpha = trace, alpha
        self.numbers = trace.begin(sentences)  # (B)

    def extend(self, rows: Numbers, over: Flags, words: Numbers, logs: Logs, their_logs: Logs, others: Numbers) -> None:
        """One step: the sentences of the rows (R; -1: it is done), what each writes, and the best words (R, n)."""
        self.trace.see(np.where(rows < 0, -1, self.numbers[rows]))
        for row in np.flatnonzero(rows >= 0).tolist():
            sentence, chosen = int(rows[row]), int(words[row])
            parent = int(self.numbers[sentence])
            fate = FINISHED if over[row] else OPEN
            self.numbers[sentence] = self.trace.consider(parent, chosen, float(logs[row]), self.alpha, fate)
            for word, log in zip(others[row].tolist(), their_logs[row].tolist(), strict=True):
                if word != chosen:
                    self.trace.consider(parent, word, log, self.alpha, DROPPED)
            if over[row]:
                self.trace.winners[sentence] = [int(self.numbers[sentence])]
