"""A text that must begin so, and phrases that must not be written: for every search, because it is the step that obeys.

`constrained` wraps a `step` and its `state`. Words that would complete a forbidden phrase, and words that are not the
next one of a forced beginning, get probability 0; what they had goes to `sink`, a word that the search never writes
anyway (a padding token in its `never`). So all other words keep the model's own probability, and scores stay what they
are without constraints.

Limits: phrases are tokens, not meanings. Forbidding the tokens of "cat" forbids "catalogue" where that begins with the
same tokens, and does not forbid "Cat", or "cat" cut into tokens otherwise: give every spelling. A phrase that must be
written is another matter (a step cannot know when to write it): see `regard.decode.grid_beam`.
"""

from collections.abc import Sequence
from typing import Generic

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.phrases import ROOT, PhraseTrie
from regard.decode.protocol import S, Step

RowPosition = tuple[int, int]  # a row, and which of the tokens just read


class ConstrainedState(Generic[S]):
    """A model's state, and where each row is in the trie and in its forced beginning."""

    def __init__(self, state: S, rows: int) -> None:
        self.state = state
        self.prompt_length: int | None = None  # how many tokens were read before anything was written
        self.sentences = list(range(rows))
        self.node_paths: list[tuple[int, ...]] = [()] * rows  # the node after every token that was read

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was."""
        self.state.reorder(index)
        rows = index.tolist()
        self.sentences = [self.sentences[row] for row in rows]
        self.node_paths = [self.node_paths[row] for row in rows]

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Take back all tokens beyond these lengths."""
        self.state.crop(lengths)
        row_lengths = [lengths] * len(self.node_paths) if isinstance(lengths, int) else lengths
        self.node_paths = [path[:length] for path, length in zip(self.node_paths, row_lengths, strict=True)]


def constrain(
    step: Step[S],
    state: S,
    rows: int,
    *,
    sink: int,
    forbidden: Sequence[Sequence[int]] = (),
    forced_prefixes: Sequence[Sequence[int]] | None = None,
) -> tuple[Step[ConstrainedState[S]], ConstrainedState[S]]:
    """A step and a state that obey.

    `rows` texts are begun. No phrase in `forbidden` is completed, not even one that begins in what was read first;
    `forced` holds for each text how it must begin (possibly nothing). These tokens are written, and their
    log-probabilities count. The search must have `sink` among its `never`, or it would write that.
    """
    trie = PhraseTrie(forbidden)
    prefixes = (
        [tuple(prefix_tokens) for prefix_tokens in forced_prefixes] if forced_prefixes is not None else [()] * rows
    )
    if len(prefixes) != rows:
        raise RegardError(f"{len(prefixes)} beginnings for {rows} texts.", fix="Give one for each, or ().")
    for prefix in prefixes:
        if any(trie.phrases_ending[trie.walk(ROOT, prefix[:length])] for length in range(len(prefix) + 1)):
            raise RegardError(f"The tokens {prefix} are forced and forbidden.", fix="Choose one of them.")

    def constrained_step(tokens: Tensor, constrained_state: ConstrainedState[S]) -> Tensor:
        logits = step(tokens, constrained_state.state)
        banned_tokens, forced_tokens = _update_paths(tokens.tolist(), constrained_state)
        if not banned_tokens and not forced_tokens:
            return logits
        return _mask_tokens(logits.float().log_softmax(dim=-1), banned_tokens, forced_tokens)

    def _update_paths(
        new_tokens: list[list[int]], constrained_state: ConstrainedState[S]
    ) -> tuple[dict[RowPosition, set[int]], dict[RowPosition, int]]:
        """The words that must not follow each token, and the one that must."""
        banned_tokens: dict[RowPosition, set[int]] = {}
        forced_tokens: dict[RowPosition, int] = {}
        if constrained_state.prompt_length is None:
            constrained_state.prompt_length = len(new_tokens[0])
        for row, row_tokens in enumerate(new_tokens):
            prefix = prefixes[constrained_state.sentences[row]]
            for position, token in enumerate(row_tokens):
                path = constrained_state.node_paths[row]
                node = trie.step(path[-1] if path else ROOT, token)
                constrained_state.node_paths[row] = (*path, node)
                if completing_tokens := trie.completing_tokens(node):
                    banned_tokens[row, position] = completing_tokens
                written_count = len(path) + 1 - constrained_state.prompt_length
                if 0 <= written_count < len(prefix):
                    forced_tokens[row, position] = prefix[written_count]
                    if prefix[written_count] in completing_tokens:
                        raise RegardError(f"The tokens {prefix} are forced and forbidden.", fix="Choose one of them.")
        return banned_tokens, forced_tokens

    def _mask_tokens(
        logprobs: Tensor, banned_tokens: dict[RowPosition, set[int]], forced_tokens: dict[RowPosition, int]
    ) -> Tensor:
        """The log-probability of words that must not be written goes to the sink: (R, k, V) -> (R, k, V)."""
        is_masked = torch.zeros_like(logprobs, dtype=torch.bool)
        for (row, position), tokens in banned_tokens.items():
            is_masked[row, position, list(tokens)] = True
        for (row, position), token in forced_tokens.items():
            is_masked[row, position] = True
            is_masked[row, position, token] = False
        is_masked[:, :, sink] = True  # whatever it has, it keeps
        masked_logprob = logprobs.masked_fill(~is_masked, float("-inf")).logsumexp(dim=-1)  # (R, k)
        logprobs = logprobs.masked_fill(is_masked, float("-inf"))
        logprobs[:, :, sink] = masked_logprob
        return logprobs

    return constrained_step, ConstrainedState(state, rows)
