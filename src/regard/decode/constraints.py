"""Forced prefixes and forbidden tokens for every search: a wrapper around the model's `step` enforces them.

`constrain` wraps a `step` and its `state`. Tokens that would complete a forbidden phrase, tokens that may not be the
first, and tokens that differ from the next token of a forced prefix, get probability 0. Their probability goes to
`absorbing_token`, a token that the search suppresses anyway (for instance padding). So all other tokens keep the
model's own probability, and scores stay comparable with those of an unconstrained search.

Limits: phrases are token sequences, not meanings. Forbidding the tokens of "cat" also forbids "catalog" if it starts
with the same tokens. It forbids neither "Cat" nor another tokenization of "cat": give every variant. For phrases that
must be generated see `regard.decode.grid_beam`; a wrapper around `step` cannot decide where to place them.
"""

from collections.abc import Sequence
from typing import Generic

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.phrases import ROOT, PhraseTrie
from regard.decode.protocol import NEG_INF, S, Step

RowPosition = tuple[int, int]  # a row, and the position of a token among those just read


class ConstrainedState(Generic[S]):
    """A model's state, and the position of each row in the trie and in its forced prefix."""

    def __init__(self, state: S, rows: int) -> None:
        self.state = state
        self.prompt_length: int | None = None  # number of tokens of the first step
        self.sentences = list(range(rows))
        self.node_paths: list[tuple[int, ...]] = [()] * rows  # the trie node after every token that was read

    def reorder(self, index: Tensor) -> None:
        """Replace row i by the old row index[i]."""
        self.state.reorder(index)
        rows = index.tolist()
        self.sentences = [self.sentences[row] for row in rows]
        self.node_paths = [self.node_paths[row] for row in rows]

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Remove all tokens beyond these lengths."""
        self.state.crop(lengths)
        row_lengths = [lengths] * len(self.node_paths) if isinstance(lengths, int) else lengths
        self.node_paths = [path[:length] for path, length in zip(self.node_paths, row_lengths, strict=True)]


def constrain(
    step: Step[S],
    state: S,
    rows: int,
    *,
    absorbing_token: int | None,
    forbidden: Sequence[Sequence[int]] = (),
    forbidden_first: Sequence[int] = (),
    forced_prefixes: Sequence[Sequence[int]] | None = None,
) -> tuple[Step[ConstrainedState[S]], ConstrainedState[S]]:
    """Wrap a model so that every search respects the constraints.

    Args:
        step: The model; see `regard.decode.protocol`.
        state: Its state for `rows` rows that have read no tokens.
        rows: Number of sequences.
        sink: A token that receives the probability of excluded tokens. The search must suppress it. None, if it
            suppresses none: log-probabilities are then those given that no token is excluded.
        forbidden: Phrases (token ids) that are never completed, not even if they start in the prompt.
        forbidden_first: Tokens that no sequence starts with, eos included if there is to be a text.
        forced_prefixes: The token ids that each sequence must start with, possibly none. They are generated, and their
            log-probabilities count. None: no prefixes.

    Returns:
        The constrained `step` and `state`, for any search.

    Raises:
        RegardError: The number of prefixes differs from `rows`, or a forced prefix contains a forbidden phrase.
    """
    trie, first_tokens = PhraseTrie(forbidden), set(forbidden_first)
    prefixes = (
        [tuple(prefix_tokens) for prefix_tokens in forced_prefixes] if forced_prefixes is not None else [()] * rows
    )
    if len(prefixes) != rows:
        raise RegardError(
            f"forced_prefixes has {len(prefixes)} prefixes, the batch has {rows} rows.",
            hint="Give one prefix per row; () forces nothing.",
        )
    for prefix in prefixes:
        if any(trie.phrases_ending[trie.walk(ROOT, prefix[:length])] for length in range(len(prefix) + 1)):
            raise _conflict_error(prefix)

    def constrained_step(tokens: Tensor, constrained_state: ConstrainedState[S]) -> Tensor:
        logits = step(tokens, constrained_state.state)
        banned_tokens, forced_tokens = _update_paths(tokens.tolist(), constrained_state)
        if not banned_tokens and not forced_tokens:
            return logits
        return _mask_tokens(logits.float().log_softmax(dim=-1), banned_tokens, forced_tokens)

    def _update_paths(
        new_tokens: list[list[int]], constrained_state: ConstrainedState[S]
    ) -> tuple[dict[RowPosition, set[int]], dict[RowPosition, int]]:
        """Advance every row in the trie; return the banned tokens and the forced token after each token read."""
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
                generated_count = len(path) + 1 - constrained_state.prompt_length
                banned = trie.completing_tokens(node) | (first_tokens if generated_count == 0 else set())
                if banned:
                    banned_tokens[row, position] = banned
                if 0 <= generated_count < len(prefix):
                    forced_tokens[row, position] = prefix[generated_count]
                    # Hypotheses beside the prefix have probability 0; what they would complete is no conflict.
                    prompt_node = (*path, node)[constrained_state.prompt_length - 1]
                    is_on_prefix = trie.walk(prompt_node, prefix[:generated_count]) == node
                    if prefix[generated_count] in banned and is_on_prefix:
                        raise _conflict_error(prefix)
        return banned_tokens, forced_tokens

    def _mask_tokens(
        logprobs: Tensor, banned_tokens: dict[RowPosition, set[int]], forced_tokens: dict[RowPosition, int]
    ) -> Tensor:
        """Move the probability of excluded tokens to the sink, or to all others: (R, k, V) -> (R, k, V)."""
        is_masked = torch.zeros_like(logprobs, dtype=torch.bool)
        for (row, position), tokens in banned_tokens.items():
            is_masked[row, position, list(tokens)] = True
        for (row, position), token in forced_tokens.items():
            is_masked[row, position] = True
            is_masked[row, position, token] = False
        if absorbing_token is None:
            return logprobs.masked_fill(is_masked, NEG_INF).log_softmax(dim=-1)
        is_masked[:, :, absorbing_token] = True  # the sink also keeps its own probability
        masked_logprob = logprobs.masked_fill(~is_masked, NEG_INF).logsumexp(dim=-1)  # (R, k)
        logprobs = logprobs.masked_fill(is_masked, NEG_INF)
        logprobs[:, :, absorbing_token] = masked_logprob
        return logprobs

    return constrained_step, ConstrainedState(state, rows)


def _conflict_error(prefix: tuple[int, ...]) -> RegardError:
    return RegardError(
        f"The tokens {prefix} are forced and forbidden.", hint="Remove the phrase from one of the two constraints."
    )
