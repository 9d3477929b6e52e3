"""Models without a network: what comes next is drawn once for every beginning, and everything can be enumerated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import torch
from torch import Tensor

BEGIN, END = 0, 1
History = tuple[int, ...]


@dataclass
class Rows:
    """The state of a table: which sentence each row is of, and what was read so far."""

    sentences: list[int]
    histories: list[History]
    reordered: list[int] = field(default_factory=list)  # how many rows there were after each reorder

    def reorder(self, index: Tensor) -> None:
        chosen = index.tolist()
        self.sentences = [self.sentences[row] for row in chosen]
        self.histories = [self.histories[row] for row in chosen]
        self.reordered.append(len(chosen))

    def crop(self, lengths: int | Sequence[int]) -> None:
        each = [lengths] * len(self.histories) if isinstance(lengths, int) else lengths
        self.histories = [history[:length] for history, length in zip(self.histories, each, strict=True)]


class Table:
    """A random model of `words` words: logits are a function of the sentence's number and of all tokens before."""

    def __init__(self, words: int, seed: int, sharpness: float = 2.0) -> None:
        self.words, self.seed, self.sharpness = words, seed, sharpness
        self.steps: list[tuple[int, ...]] = []  # the shape of everything that was read

    def start(self, sentences: Sequence[int]) -> Rows:
        return Rows(list(sentences), [()] * len(sentences))

    def step(self, tokens: Tensor, state: Rows) -> Tensor:
        assert tokens.size(0) == len(state.histories)
        self.steps.append(tuple(tokens.shape))
        answers: list[list[Tensor]] = [[] for _ in state.histories]
        for row, new in enumerate(tokens.tolist()):
            for token in new:
                state.histories[row] = (*state.histories[row], token)
                answers[row].append(self.logits(state.sentences[row], state.histories[row]))
        return torch.stack([torch.stack(row) for row in answers])  # (R, k, V)

    @cache  # noqa: B019 - it dies with the test
    def logits(self, sentence: int, history: History) -> Tensor:
        seed = hash((self.seed, sentence, history)) % 2**31  # of numbers: the same in every process
        return torch.randn(self.words, generator=torch.Generator().manual_seed(seed)) * self.sharpness

    def logs(self, sentence: int, text: Sequence[int], before: History = (BEGIN,)) -> list[float]:
        """The log-probability of each token of a text."""
        found = []
        for place, token in enumerate(text):
            logits = self.logits(sentence, (*before, *text[:place]))
            found.append(float(logits.log_softmax(dim=-1)[token]))
        return found


@dataclass(frozen=True)
class Fixed:
    """A model whose next word depends on the last word only, written down by hand as probabilities."""

    probabilities: Tensor  # (V, V): row = last word

    def start(self, sentences: Sequence[int]) -> Rows:
        return Rows(list(sentences), [()] * len(sentences))

    def step(self, tokens: Tensor, state: Rows) -> Tensor:
        state.histories = [(*old, *new) for old, new in zip(state.histories, map(tuple, tokens.tolist()), strict=True)]
        return self.probabilities[tokens].log()  # (R, k, V)


def texts(words: int, longest: int, never: frozenset[int] = frozenset()) -> Iterator[History]:
    """Every text there is: those that end, and those that are cut off at the longest length."""
    inner = [word for word in range(words) if word != END and word not in never]
    for length in range(longest):
        for text in product(inner, repeat=length):
            yield (*text, END)
    yield from product(inner, repeat=longest)


def exhaustive(
    table: Table, sentence: int, longest: int, alpha: float, never: frozenset[int] = frozenset()
) -> list[tuple[float, History]]:
    """All texts with their scores, best first: what no search can beat."""
    scored = (
        (sum(table.logs(sentence, text)) / len(text) ** alpha, text) for text in texts(table.words, longest, never)
    )
    return sorted(scored, reverse=True)
