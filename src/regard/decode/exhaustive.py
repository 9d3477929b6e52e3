"""Exhaustive search: every text there is, so nothing can be better. The oracle of the other searches' tests.

With K words and N tokens there are K^N ways to write, which is why nobody does this with a real vocabulary: 10,000
words and 10 tokens are 10^40. (One of the words is END, behind which nothing is written, so that a little fewer are
different: those that end after 1, 2, ... N tokens, and those that are cut off.) Greedy search considers K N words,
a beam of B at most B K N.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.lengths import Alpha, normaliser
from regard.decode.step import Hypothesis, S, Step, check_longest, hypothesis, not_a_number

MOST = 100_000
NOTHING = float("-inf")


def number_of_texts(words: int, longest: int, *, ends: bool = True) -> int:
    """How many texts there are of up to `longest` tokens; one of the `words` is END, unless nothing `ends` them.

    >>> number_of_texts(10, 4, ends=False), number_of_texts(10, 4)
    (10000, 7381)
    """
    going_on = words - ends
    ended = sum(going_on**length for length in range(longest)) if ends else 0
    return ended + going_on**longest


def exhaustive(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    end: int,
    longest: Sequence[int],
    alpha: Alpha = 1.0,
    best: int = 1,
    never: Tensor | None = None,
    most: int = MOST,
) -> list[list[Hypothesis]]:
    """The `best` of all texts of each sentence, best first; fewer where there are fewer.

    Arguments and scores are those of `regard.decode.beam`: log p / |y|^alpha, END counted. Texts that the
    model holds impossible (probability 0) are none. More than `most` texts are refused.
    """
    check_longest(longest, first.size(0))
    divide_by = normaliser(alpha)
    finished: list[list[tuple[float, Hypothesis]]] = [[] for _ in longest]
    sentences = np.arange(first.size(0))  # (R) of which sentence each beginning is
    limits = np.array(longest)
    written = np.empty((first.size(0), 0), np.int64)  # (R, place)
    logs = np.empty((first.size(0), 0))  # (R, place)
    tokens = first
    for place in range(1, max(longest) + 1):
        log_probabilities = step(tokens, state)[:, -1].float().log_softmax(dim=-1).cpu()  # (R, V)
        if never is not None:
            log_probabilities.index_fill_(1, never.cpu(), NOTHING)
        if place == 1:
            _check_count(log_probabilities, end, longest, never, most)
        if bool(log_probabilities.isnan().any()):
            raise not_a_number()
        rows, words = (log_probabilities > NOTHING).nonzero(as_tuple=True)  # (n), (n): all that can be written
        new = log_probabilities[rows, words].double().numpy()
        parents, last = rows.numpy(), words.numpy()
        written = np.concatenate((written[parents], last[:, None]), axis=1)  # (n, place)
        logs = np.concatenate((logs[parents], new[:, None]), axis=1)  # (n, place)
        sentences = sentences[parents]  # (n)
        over = (last == end) | (limits[sentences] <= place)  # (n)
        scores = logs.sum(axis=1) / divide_by(place)  # (n)
        for sentence in np.unique(sentences[over]).tolist():
            here = (over & (sentences == sentence)).nonzero()[0]
            for row in here[(-scores[here]).argsort(kind="stable")[:best]].tolist():
                text = _told(written[row], logs[row], end, float(scores[row]))
                finished[sentence].append((text.score, text))
        if over.all():
            break
        state.reorder(torch.from_numpy(parents[~over]).to(first.device))
        written, logs, sentences = written[~over], logs[~over], sentences[~over]
        tokens = torch.from_numpy(np.ascontiguousarray(written[:, -1:])).to(first.device)  # (R, 1)
    return [[text for _, text in sorted(texts, key=lambda pair: -pair[0])[:best]] for texts in finished]


def _told(tokens: NDArray[np.int64], logs: NDArray[np.float64], end: int, score: float) -> Hypothesis:
    plain = hypothesis(tokens.tolist(), logs.tolist(), end, alpha=0.0)
    return Hypothesis(plain.tokens, plain.logs, score, plain.ended)


def _check_count(logs: Tensor, end: int, longest: Sequence[int], never: Tensor | None, most: int) -> None:
    banned = set() if never is None else set(never.tolist())
    ends = 0 <= end < logs.size(1) and end not in banned
    words = logs.size(1) - len(banned)
    count = sum(number_of_texts(words, length, ends=ends) for length in longest)
    if count > most:
        raise RegardError(
            f"There are {count:,} texts of up to {max(longest)} tokens over {words:,} words; {most:,} can be compared.",
            fix="Search with a beam, or give a shorter `longest`, fewer words or a larger `most`.",
        )
