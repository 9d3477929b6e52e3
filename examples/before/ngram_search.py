"""n-gram models as models for the searches of `regard.decode`: a step is a lookup, the state is the tokens so far."""

from collections.abc import Sequence

import numpy as np
import torch
from examples.before.ngrams import NgramModel
from torch import Tensor


class TokensSoFar:
    """The state of an n-gram model between two steps: the tokens of each row."""

    def __init__(self, rows: int) -> None:
        self.rows: list[list[int]] = [[] for _ in range(rows)]

    def reorder(self, index: Tensor) -> None:
        """Replace row i by the old row index[i]."""
        self.rows = [list(self.rows[i]) for i in index.tolist()]

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Remove all tokens beyond these lengths."""
        limits = [lengths] * len(self.rows) if isinstance(lengths, int) else lengths
        self.rows = [row[:limit] for row, limit in zip(self.rows, limits, strict=True)]


class NgramStep:
    """The step of a search: tokens (R, k) and the state -> log-probabilities (R, k, V)."""

    def __init__(self, model: NgramModel) -> None:
        self.model = model

    def __call__(self, tokens: Tensor, state: TokensSoFar) -> Tensor:
        """Read k tokens of each row and return the distribution after each of them."""
        steps = []
        for column in tokens.T.tolist():
            for row, token in zip(state.rows, column, strict=True):
                row.append(token)
            context = len(self.model.orders) - 1
            length = min(context, len(state.rows[0]))
            contexts = np.array([row[len(row) - length :] for row in state.rows], np.int64).reshape(-1, length)
            steps.append(self.model.next_logprobs(contexts))  # (R, V)
        return torch.from_numpy(np.stack(steps, axis=1)).float()  # (R, k, V)
