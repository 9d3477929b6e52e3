"""A text that must begin so, and phrases that must not be written: for every search, because it is the step that obeys.

`constrained` wraps a `step` and its `state`. Words that would complete a forbidden phrase, and words that are not the
next one of a forced beginning, get probability 0; what they had goes to `sink`, a word that the search never writes
anyway (a padding token in its `never`). So all other words keep the model's own probability, and scores stay what they
are without constraints.

Limits: phrases are tokens, not meanings. Forbidding the tokens of "cat" forbids "catalogue" where that begins with the
same tokens, and does not forbid "Cat", or "cat" cut into tokens otherwise: give every spelling. A phrase that must be
written is another matter (a step cannot know when to write it): see `regard.decode.required`.
"""

from collections.abc import Sequence
from typing import Generic

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.phrases import ROOT, Phrases
from regard.decode.step import S, Step

Place = tuple[int, int]  # a row, and which of the tokens just read


class Watched(Generic[S]):
    """A model's state, and where each row is in the trie and in its forced beginning."""

    def __init__(self, state: S, rows: int) -> None:
        self.state = state
        self.given: int | None = None  # how many tokens were read before anything was written
        self.sentences = list(range(rows))
        self.paths: list[tuple[int, ...]] = [()] * rows  # the node after every token that was read

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was."""
        self.state.reorder(index)
        chosen = index.tolist()
        self.sentences = [self.sentences[row] for row in chosen]
        self.paths = [self.paths[row] for row in chosen]

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Take back all tokens beyond these lengths."""
        self.state.crop(lengths)
        each = [lengths] * len(self.paths) if isinstance(lengths, int) else lengths
        self.paths = [path[:length] for path, length in zip(self.paths, each, strict=True)]


def constrained(
    step: Step[S],
    state: S,
    rows: int,
    *,
    sink: int,
    forbidden: Sequence[Sequence[int]] = (),
    forced: Sequence[Sequence[int]] | None = None,
) -> tuple[Step[Watched[S]], Watched[S]]:
    """A step and a state that obey.

    `rows` texts are begun. No phrase in `forbidden` is completed, not even one that begins in what was read first;
    `forced` holds for each text how it must begin (possibly nothing). These tokens are written, and their
    log-probabilities count. The search must have `sink` among its `never`, or it would write that.
    """
    phrases = Phrases(forbidden)
    beginnings = [tuple(one) for one in forced] if forced is not None else [()] * rows
    if len(beginnings) != rows:
        raise RegardError(f"{len(beginnings)} beginnings for {rows} texts.", fix="Give one for each, or ().")
    for beginning in beginnings:
        if any(phrases.ends[phrases.along(ROOT, beginning[:size])] for size in range(len(beginning) + 1)):
            raise RegardError(f"The tokens {beginning} are forced and forbidden.", fix="Choose one of them.")

    def obedient(tokens: Tensor, watched: Watched[S]) -> Tensor:
        logits = step(tokens, watched.state)
        banned, only = _follow(tokens.tolist(), watched)
        if not banned and not only:
            return logits
        return _without(logits.float().log_softmax(dim=-1), banned, only)

    def _follow(new: list[list[int]], watched: Watched[S]) -> tuple[dict[Place, set[int]], dict[Place, int]]:
        """The words that must not follow each token, and the one that must."""
        banned: dict[Place, set[int]] = {}
        only: dict[Place, int] = {}
        if watched.given is None:
            watched.given = len(new[0])
        for row, read in enumerate(new):
            beginning = beginnings[watched.sentences[row]]
            for place, token in enumerate(read):
                path = watched.paths[row]
                node = phrases.after(path[-1] if path else ROOT, token)
                watched.paths[row] = (*path, node)
                if words := phrases.completing(node):
                    banned[row, place] = words
                written = len(path) + 1 - watched.given
                if 0 <= written < len(beginning):
                    only[row, place] = beginning[written]
                    if beginning[written] in words:
                        raise RegardError(
                            f"The tokens {beginning} are forced and forbidden.", fix="Choose one of them."
                        )
        return banned, only

    def _without(logs: Tensor, banned: dict[Place, set[int]], only: dict[Place, int]) -> Tensor:
        """The log-probability of words that must not be written goes to the sink: (R, k, V) -> (R, k, V)."""
        out = torch.zeros_like(logs, dtype=torch.bool)
        for (row, place), words in banned.items():
            out[row, place, list(words)] = True
        for (row, place), word in only.items():
            out[row, place] = True
            out[row, place, word] = False
        out[:, :, sink] = True  # whatever it has, it keeps
        lost = logs.masked_fill(~out, float("-inf")).logsumexp(dim=-1)  # (R, k)
        logs = logs.masked_fill(out, float("-inf"))
        logs[:, :, sink] = lost
        return logs

    return obedient, Watched(state, rows)
