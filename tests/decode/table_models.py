"""Models without a network: a random table of logits for every prefix, so that all sequences can be enumerated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import pytest
import torch
from torch import Tensor

from regard.decode.protocol import Hypothesis

BOS, EOS = 0, 1
SUPPRESSED = torch.tensor([BOS])
MAX_LENGTHS = [4, 2, 3, 4]
SENTENCES = [0, 1, 2, 3]
History = tuple[int, ...]


@dataclass
class TableState:
    """The state of a table model: the sentence of each row, and the tokens that it has read."""

    sentences: list[int]
    histories: list[History]
    reordered_row_counts: list[int] = field(default_factory=list)  # number of rows after each reorder

    def reorder(self, index: Tensor) -> None:
        rows = index.tolist()
        self.sentences = [self.sentences[row] for row in rows]
        self.histories = [self.histories[row] for row in rows]
        self.reordered_row_counts.append(len(rows))

    def crop(self, lengths: int | Sequence[int]) -> None:
        row_lengths = [lengths] * len(self.histories) if isinstance(lengths, int) else lengths
        self.histories = [history[:length] for history, length in zip(self.histories, row_lengths, strict=True)]


class TableModel:
    """A random model: its logits are a function of the sentence number and of all tokens before."""

    def __init__(self, vocabulary_size: int, seed: int, sharpness: float = 2.0) -> None:
        self.vocabulary_size, self.seed, self.sharpness = vocabulary_size, seed, sharpness
        self.steps: list[tuple[int, ...]] = []  # the shape of the tokens of every step

    def start(self, sentences: Sequence[int]) -> TableState:
        return TableState(list(sentences), [()] * len(sentences))

    def step(self, tokens: Tensor, state: TableState) -> Tensor:
        assert tokens.size(0) == len(state.histories)
        self.steps.append(tuple(tokens.shape))
        logits: list[list[Tensor]] = [[] for _ in state.histories]
        for row, new_tokens in enumerate(tokens.tolist()):
            for token in new_tokens:
                state.histories[row] = (*state.histories[row], token)
                logits[row].append(self.logits(state.sentences[row], state.histories[row]))
        return torch.stack([torch.stack(row) for row in logits])  # (R, k, V)

    @cache  # noqa: B019 - the model lives as long as the test
    def logits(self, sentence: int, history: History) -> Tensor:
        seed = hash((self.seed, sentence, history)) % 2**31  # a hash of integers is the same in every process
        return torch.randn(self.vocabulary_size, generator=torch.Generator().manual_seed(seed)) * self.sharpness

    def logprobs(self, sentence: int, text: Sequence[int], prompt: History = (BOS,)) -> list[float]:
        """Return the log-probability of each token of a sequence."""
        logprobs = []
        for position, token in enumerate(text):
            logits = self.logits(sentence, (*prompt, *text[:position]))
            logprobs.append(float(logits.log_softmax(dim=-1)[token]))
        return logprobs


@dataclass(frozen=True)
class BigramModel:
    """A model whose next token depends on the last token only, given as probabilities."""

    probabilities: Tensor  # (V, V): row = last token

    def start(self, sentences: Sequence[int]) -> TableState:
        return TableState(list(sentences), [()] * len(sentences))

    def step(self, tokens: Tensor, state: TableState) -> Tensor:
        state.histories = [(*old, *new) for old, new in zip(state.histories, map(tuple, tokens.tolist()), strict=True)]
        return self.probabilities[tokens].log()  # (R, k, V)


def iter_sequences(
    vocabulary_size: int, max_new_tokens: int, suppress_tokens: frozenset[int] = frozenset()
) -> Iterator[History]:
    """Yield every sequence: those that end with eos, and those that are cut off at the maximum length."""
    allowed_tokens = [token for token in range(vocabulary_size) if token != EOS and token not in suppress_tokens]
    for length in range(max_new_tokens):
        for text in product(allowed_tokens, repeat=length):
            yield (*text, EOS)
    yield from product(allowed_tokens, repeat=max_new_tokens)


def score_all_sequences(
    table: TableModel,
    sentence: int,
    max_new_tokens: int,
    length_penalty: float,
    suppress_tokens: frozenset[int] = frozenset(),
) -> list[tuple[float, History]]:
    """Return all sequences with their scores, best first: no search can find a better one."""
    scored = (
        (sum(table.logprobs(sentence, text)) / len(text) ** length_penalty, text)
        for text in iter_sequences(table.vocabulary_size, max_new_tokens, suppress_tokens)
    )
    return sorted(scored, reverse=True)


def make_prompt(rows: int) -> Tensor:
    return torch.full((rows, 1), BOS)


def check_hypothesis(hypothesis: Hypothesis, table: TableModel, sentence: int, length_penalty: float) -> None:
    """Check a hypothesis's log-probabilities and score against the model."""
    logprobs = table.logprobs(sentence, hypothesis.tokens)
    assert hypothesis.logprobs == pytest.approx(logprobs, abs=1e-5)
    assert hypothesis.score == pytest.approx(sum(logprobs) / len(logprobs) ** length_penalty, abs=1e-5)
    assert hypothesis.ended == (hypothesis.tokens[-1] == EOS)
    assert hypothesis.without_eos == tuple(token for token in hypothesis.tokens if token != EOS)
    assert EOS not in hypothesis.tokens[:-1]


def has_phrase(text: tuple[int, ...], phrase: tuple[int, ...]) -> bool:
    return any(text[start : start + len(phrase)] == phrase for start in range(len(text) - len(phrase) + 1))
