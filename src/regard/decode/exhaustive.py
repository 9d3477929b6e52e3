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
from regard.decode.length_penalty import LengthPenalty, as_function
from regard.decode.protocol import Hypothesis, S, Step, check_max_lengths, make_hypothesis, nan_error

MAX_SEQUENCES = 100_000
NEG_INF = float("-inf")


def count_sequences(vocabulary_size: int, max_length: int, *, has_eos: bool = True) -> int:
    """How many texts there are of up to `longest` tokens; one of the `words` is END, unless nothing `ends` them.

    >>> count_sequences(10, 4, has_eos=False), count_sequences(10, 4)
    (10000, 7381)
    """
    continuing_tokens = vocabulary_size - has_eos
    ended_count = sum(continuing_tokens**length for length in range(max_length)) if has_eos else 0
    return ended_count + continuing_tokens**max_length


def exhaustive(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    eos: int,
    max_lengths: Sequence[int],
    length_penalty: LengthPenalty = 1.0,
    n_best: int = 1,
    suppressed: Tensor | None = None,
    max_sequences: int = MAX_SEQUENCES,
) -> list[list[Hypothesis]]:
    """The `best` of all texts of each sentence, best first; fewer where there are fewer.

    Arguments and scores are those of `regard.decode.beam`: log p / |y|^alpha, END counted. Texts that the
    model holds impossible (probability 0) are none. More than `most` texts are refused.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    penalty_fn = as_function(length_penalty)
    finished: list[list[tuple[float, Hypothesis]]] = [[] for _ in max_lengths]
    sentences = np.arange(prompt.size(0))  # (R) of which sentence each beginning is
    limits = np.array(max_lengths)
    sequences = np.empty((prompt.size(0), 0), np.int64)  # (R, place)
    sequence_logprobs = np.empty((prompt.size(0), 0))  # (R, place)
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logprobs = step(tokens, state)[:, -1].float().log_softmax(dim=-1).cpu()  # (R, V)
        if suppressed is not None:
            logprobs.index_fill_(1, suppressed.cpu(), NEG_INF)
        if length == 1:
            _check_count(logprobs, eos, max_lengths, suppressed, max_sequences)
        if bool(logprobs.isnan().any()):
            raise nan_error()
        rows, next_tokens = (logprobs > NEG_INF).nonzero(as_tuple=True)  # (n), (n): all that can be written
        new_logprobs = logprobs[rows, next_tokens].double().numpy()
        parents, last_tokens = rows.numpy(), next_tokens.numpy()
        sequences = np.concatenate((sequences[parents], last_tokens[:, None]), axis=1)  # (n, place)
        sequence_logprobs = np.concatenate((sequence_logprobs[parents], new_logprobs[:, None]), axis=1)  # (n, place)
        sentences = sentences[parents]  # (n)
        finished_mask = (last_tokens == eos) | (limits[sentences] <= length)  # (n)
        scores = sequence_logprobs.sum(axis=1) / penalty_fn(length)  # (n)
        for sentence in np.unique(sentences[finished_mask]).tolist():
            finished_rows = (finished_mask & (sentences == sentence)).nonzero()[0]
            for row in finished_rows[(-scores[finished_rows]).argsort(kind="stable")[:n_best]].tolist():
                hypothesis = _make_scored_hypothesis(sequences[row], sequence_logprobs[row], eos, float(scores[row]))
                finished[sentence].append((hypothesis.score, hypothesis))
        if finished_mask.all():
            break
        state.reorder(torch.from_numpy(parents[~finished_mask]).to(prompt.device))
        sequences, sequence_logprobs, sentences = (
            sequences[~finished_mask],
            sequence_logprobs[~finished_mask],
            sentences[~finished_mask],
        )
        tokens = torch.from_numpy(np.ascontiguousarray(sequences[:, -1:])).to(prompt.device)  # (R, 1)
    return [
        [hypothesis for _, hypothesis in sorted(hypotheses, key=lambda pair: -pair[0])[:n_best]]
        for hypotheses in finished
    ]


def _make_scored_hypothesis(
    tokens: NDArray[np.int64], logprobs: NDArray[np.float64], eos: int, score: float
) -> Hypothesis:
    unscored = make_hypothesis(tokens.tolist(), logprobs.tolist(), eos, length_penalty=0.0)
    return Hypothesis(unscored.tokens, unscored.logprobs, score, unscored.ended)


def _check_count(
    logprobs: Tensor, eos: int, max_lengths: Sequence[int], suppressed: Tensor | None, max_sequences: int
) -> None:
    suppressed_ids = set() if suppressed is None else set(suppressed.tolist())
    has_eos = 0 <= eos < logprobs.size(1) and eos not in suppressed_ids
    vocabulary_size = logprobs.size(1) - len(suppressed_ids)
    count = sum(count_sequences(vocabulary_size, length, has_eos=has_eos) for length in max_lengths)
    if count > max_sequences:
        raise RegardError(
            f"There are {count:,} texts of up to {max(max_lengths)} tokens over {vocabulary_size:,} words; {max_sequences:,} can be compared.",
            fix="Search with a beam, or give a shorter `longest`, fewer words or a larger `most`.",
        )
