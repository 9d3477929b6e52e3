"""Forced prefixes and forbidden tokens for every search: a wrapper around the model's `step` enforces them.

`ConstrainedStep` wraps a `step`, and its `start` wraps a state. Tokens that would complete a forbidden phrase,
forbidden first tokens, and tokens that deviate from a forced prefix get probability 0. Their probability goes to
`absorbing_token`, a token that the search suppresses anyway (for instance padding). All other tokens keep the model's
probability, so scores stay comparable with an unconstrained search.

Limits: phrases are matched as token sequences. Forbidding the tokens of "cat" also forbids "catalog" if it starts
with the same tokens. It does not forbid "Cat" or another tokenization of "cat": list every variant. For phrases that
must be generated see `regard.decode.grid_beam`; a wrapper around `step` cannot decide where to place them.
"""

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.phrases import ROOT, PhraseTrie
from regard.decode.protocol import NEG_INF, S, Step


class ConstrainedState(Generic[S]):
    """A model's state, and the position of each row in the trie and in its forced prefix."""

    def __init__(self, state: S, prefixes: list[tuple[int, ...]]) -> None:
        self.state, self.prefixes = state, prefixes
        self.prompt_length: int | None = None  # number of tokens of the first step
        self.node_paths: list[tuple[int, ...]] = [()] * len(prefixes)  # the trie node after every token that was read

    def reorder(self, index: Tensor) -> None:
        """Replace row i by the old row index[i]."""
        self.state.reorder(index)
        rows = index.tolist()
        self.prefixes = [self.prefixes[row] for row in rows]
        self.node_paths = [self.node_paths[row] for row in rows]

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Remove all tokens beyond these lengths."""
        self.state.crop(lengths)
        row_lengths = [lengths] * len(self.node_paths) if isinstance(lengths, int) else lengths
        self.node_paths = [path[:length] for path, length in zip(self.node_paths, row_lengths, strict=True)]


class _Rule(NamedTuple):
    """The tokens that may not follow the token at one position of one row."""

    row: int
    position: int  # among the tokens just read
    banned: set[int]
    forced: int | None  # the only token that may follow


class ConstrainedStep(Generic[S]):
    """A `step` that enforces the constraints and works with every search.

    Args:
        step: The model; see `regard.decode.protocol`.
        absorbing_token: A token that receives the probability of excluded tokens. The search must suppress it. None if
            it suppresses none: log-probabilities are then renormalized over the allowed tokens.
        forbidden: Phrases (token ids) that are never completed, even if they start in the prompt.
        forbidden_first: Tokens that cannot start a sequence. Include eos to prevent empty sequences.
        forced_prefixes: The token ids that each sequence must start with; may be empty. They are generated, and their
            log-probabilities count. None: no prefixes.

    Raises:
        RegardError: A forced prefix contains a forbidden phrase.
    """

    def __init__(
        self,
        step: Step[S],
        *,
        absorbing_token: int | None,
        forbidden: Sequence[Sequence[int]] = (),
        forbidden_first: Sequence[int] = (),
        forced_prefixes: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.step, self.absorbing_token = step, absorbing_token
        self.trie, self.forbidden_first = PhraseTrie(forbidden), set(forbidden_first)
        self.prefixes = None if forced_prefixes is None else [tuple(prefix) for prefix in forced_prefixes]
        for prefix in self.prefixes or ():
            if any(self.trie.phrases_ending[self.trie.walk(ROOT, prefix[:end])] for end in range(len(prefix) + 1)):
                raise _conflict_error(prefix)

    def start(self, state: S, rows: int) -> ConstrainedState[S]:
        """Return the state for `rows` rows, given the model's state for rows that have read no tokens.

        Raises:
            RegardError: The number of prefixes differs from `rows`.
        """
        prefixes = [()] * rows if self.prefixes is None else self.prefixes
        if len(prefixes) != rows:
            raise RegardError(
                f"forced_prefixes has {len(prefixes)} prefixes, the batch has {rows} rows.",
                hint="Pass one prefix per row; use () for rows without one.",
            )
        return ConstrainedState(state, list(prefixes))

    def __call__(self, tokens: Tensor, state: ConstrainedState[S]) -> Tensor:
        """Return the model's logits, or its log-probabilities under the constraints: (R, k) -> (R, k, V)."""
        logits = self.step(tokens, state.state)
        rules = list(self._read(tokens.tolist(), state))
        return self._mask(logits.float().log_softmax(dim=-1), rules) if rules else logits

    def _read(self, new_tokens: list[list[int]], state: ConstrainedState[S]) -> Iterator[_Rule]:
        """Advance every row in the trie; yield the tokens excluded at each position."""
        if state.prompt_length is None:
            state.prompt_length = len(new_tokens[0])
        for row, row_tokens in enumerate(new_tokens):
            prefix, path = state.prefixes[row], state.node_paths[row]
            for position, token in enumerate(row_tokens):
                path = (*path, self.trie.step(path[-1] if path else ROOT, token))
                generated_count = len(path) - state.prompt_length
                banned = self.trie.completing_tokens(path[-1])
                if generated_count == 0:
                    banned |= self.forbidden_first
                forced = prefix[generated_count] if 0 <= generated_count < len(prefix) else None
                # Hypotheses that leave the prefix have probability 0, so their phrases are not a conflict.
                if forced in banned and path[-1] == self.trie.walk(
                    path[state.prompt_length - 1], prefix[:generated_count]
                ):
                    raise _conflict_error(prefix)
                if banned or forced is not None:
                    yield _Rule(row, position, banned, forced)
            state.node_paths[row] = path

    def _mask(self, logprobs: Tensor, rules: Sequence[_Rule]) -> Tensor:
        """Move the probability of excluded tokens to the absorbing one, or to all others: (R, k, V) -> (R, k, V)."""
        is_masked = torch.zeros_like(logprobs, dtype=torch.bool)
        for row, position, banned, forced in rules:
            if forced is None:
                is_masked[row, position, list(banned)] = True
            else:
                is_masked[row, position] = True
                is_masked[row, position, forced] = False
        if self.absorbing_token is None:
            return logprobs.masked_fill(is_masked, NEG_INF).log_softmax(dim=-1)
        is_masked[:, :, self.absorbing_token] = True  # it also keeps its own probability
        masked_logprob = logprobs.masked_fill(~is_masked, NEG_INF).logsumexp(dim=-1)  # (R, k)
        logprobs = logprobs.masked_fill(is_masked, NEG_INF)
        logprobs[:, :, self.absorbing_token] = masked_logprob
        return logprobs


def _conflict_error(prefix: tuple[int, ...]) -> RegardError:
    return RegardError(
        f"The tokens {prefix} are forced and forbidden.", hint="Remove the phrase from one of the two constraints."
    )
