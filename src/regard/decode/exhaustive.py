"""Exhaustive search: score every possible sequence and return the best. The tests compare the other searches with it.

A vocabulary of K tokens has K^N sequences of length N. This is feasible only for tiny vocabularies: 10^40 sequences for
K = 10,000 and N = 10. (Sequences that end early with eos make the exact count slightly smaller.) Greedy search
considers K N tokens, a beam of B at most B K N.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.length_penalty import LengthPenalty, as_function
from regard.decode.partial import next_logprobs
from regard.decode.protocol import NEG_INF, Hypothesis, S, Step, check_max_lengths, nan_error

MAX_SEQUENCES = 100_000


def count_sequences(vocabulary_size: int, max_new_tokens: int, *, has_eos: bool = True) -> int:
    """Count the sequences of up to `max_new_tokens` tokens; eos is one of the `vocabulary_size` tokens if `has_eos`.

    >>> count_sequences(10, 4, has_eos=False), count_sequences(10, 4)
    (10000, 7381)
    """
    continuing_tokens = vocabulary_size - has_eos
    ended_count = sum(continuing_tokens**length for length in range(max_new_tokens)) if has_eos else 0
    return ended_count + continuing_tokens**max_new_tokens


def exhaustive(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    eos: int,
    max_lengths: Sequence[int],
    length_penalty: LengthPenalty = 1.0,
    n_best: int = 1,
    suppress_tokens: Tensor | None = None,
    max_sequences: int = MAX_SEQUENCES,
) -> list[list[Hypothesis]]:
    """Return the `n_best` of all sequences of each sentence, best first; fewer where fewer are possible.

    See `regard.decode.beam` for the scores and the other arguments. Sequences of probability 0 are left out.

    Args:
        max_sequences: Maximum number of sequences to compare.

    Raises:
        RegardError: There are more than `max_sequences` sequences, or the logits are NaN.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    penalty_fn = as_function(length_penalty)
    finished: list[list[Hypothesis]] = [[] for _ in max_lengths]
    sentences = np.arange(prompt.size(0))  # (R) the sentence of each row
    limits = np.array(max_lengths)
    sequences = np.empty((prompt.size(0), 0), np.int64)  # (R, length)
    sequence_logprobs = np.empty((prompt.size(0), 0))  # (R, length)
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logprobs = next_logprobs(step, state, tokens, suppress_tokens).cpu()  # (R, V)
        if length == 1:
            _check_count(logprobs, eos, max_lengths, suppress_tokens, max_sequences)
        if bool(logprobs.isnan().any()):
            raise nan_error()
        rows, next_tokens = (logprobs > NEG_INF).nonzero(as_tuple=True)  # (n), (n): all possible continuations
        new_logprobs = logprobs[rows, next_tokens].double().numpy()
        parents, last_tokens = rows.numpy(), next_tokens.numpy()
        sequences = np.concatenate((sequences[parents], last_tokens[:, None]), axis=1)  # (n, length)
        sequence_logprobs = np.concatenate((sequence_logprobs[parents], new_logprobs[:, None]), axis=1)  # (n, length)
        sentences = sentences[parents]  # (n)
        finished_mask = (last_tokens == eos) | (limits[sentences] <= length)  # (n)
        scores = sequence_logprobs.sum(axis=1) / penalty_fn(length)  # (n)
        for sentence in np.unique(sentences[finished_mask]).tolist():
            finished_rows = (finished_mask & (sentences == sentence)).nonzero()[0]
            for row in finished_rows[(-scores[finished_rows]).argsort(kind="stable")[:n_best]].tolist():
                hypothesis_tokens, hypothesis_logprobs = sequences[row].tolist(), sequence_logprobs[row].tolist()
                ended = hypothesis_tokens[-1] == eos
                finished[sentence].append(
                    Hypothesis(tuple(hypothesis_tokens), tuple(hypothesis_logprobs), float(scores[row]), ended)
                )
        open_mask = ~finished_mask
        if not open_mask.any():
            break
        state.reorder(torch.from_numpy(parents[open_mask]))
        sequences, sequence_logprobs = sequences[open_mask], sequence_logprobs[open_mask]
        sentences = sentences[open_mask]
        tokens = torch.from_numpy(np.ascontiguousarray(sequences[:, -1:])).to(prompt.device)  # (R, 1)
    return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[:n_best] for hypotheses in finished]


def _check_count(
    logprobs: Tensor, eos: int, max_lengths: Sequence[int], suppress_tokens: Tensor | None, max_sequences: int
) -> None:
    suppressed_ids = set() if suppress_tokens is None else set(suppress_tokens.tolist())
    has_eos = 0 <= eos < logprobs.size(1) and eos not in suppressed_ids
    vocabulary_size = logprobs.size(1) - len(suppressed_ids)
    count = sum(count_sequences(vocabulary_size, length, has_eos=has_eos) for length in max_lengths)
    if count > max_sequences:
        raise RegardError(
            f"There are {count:,} sequences of up to {max(max_lengths)} tokens over a vocabulary of "
            f"{vocabulary_size:,}; max_sequences is {max_sequences:,}.",
            hint="Use beam search, or a smaller max_lengths or vocabulary, or a larger max_sequences.",
        )
