"""Greedy search: take the likeliest token at every step."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.decode.length_penalty import LengthPenalty, describe_penalty
from regard.decode.protocol import Hypothesis, S, Step, check_max_lengths, make_hypothesis
from regard.decode.topk import BoolArray, FloatArray, IntArray, compact, to_numpy, topk_logprobs
from regard.decode.trace import DROPPED, FINISHED, OPEN, Trace

COMPACT_DIVISOR = 8  # finished rows are removed once they are an eighth of all rows: each removal moves other rows


def greedy(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    eos: int,
    max_lengths: Sequence[int],
    length_penalty: LengthPenalty = 1.0,
    suppress_tokens: Tensor | None = None,
    trace: Trace | None = None,
    must_remove_full: bool = False,
) -> list[Hypothesis]:
    """Return one hypothesis per row. Ties go to the lowest token id.

    See `regard.decode.protocol` for the arguments shared by all searches.

    Args:
        trace: Records the best tokens of every step.
        must_remove_full: Remove a row as soon as it has reached its maximum: rows that begin at different lengths may
            have no room in the state for another token. By default several finished rows are removed at once.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    limits = np.array(max_lengths)
    output_tokens = np.full((limits.size, max(max_lengths)), eos)  # by sentence
    output_logprobs = np.zeros(output_tokens.shape)
    sentences = np.arange(limits.size)  # (R) the sentence of each row
    done_mask = np.zeros(limits.size, np.bool_)  # (R)
    greedy_trace = _GreedyTrace(trace, length_penalty, max_lengths, eos) if trace is not None else None
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logits = step(tokens, state)[:, -1].float()  # (R, V)
        top_candidates = (
            None
            if trace is None
            else to_numpy(
                *topk_logprobs(logits.clone(), min(trace.candidates_per_step, logits.size(1)), suppress_tokens)
            )
        )
        chosen_logprobs, tokens = topk_logprobs(logits, 1, suppress_tokens)  # (R, 1)
        new_logprobs, new_tokens = to_numpy(chosen_logprobs, tokens)  # (R, 1), the only synchronization with the device
        output_tokens[sentences, length - 1], output_logprobs[sentences, length - 1] = (
            new_tokens[:, 0],
            new_logprobs[:, 0],
        )
        full_mask = limits[sentences] <= length
        finished_mask = (new_tokens[:, 0] == eos) | full_mask
        if greedy_trace is not None and top_candidates is not None:
            greedy_trace.extend(
                np.where(done_mask, -1, sentences), finished_mask, new_tokens[:, 0], new_logprobs[:, 0], *top_candidates
            )
        done_mask |= finished_mask
        if done_mask.all():
            break
        if done_mask.sum() * COMPACT_DIVISOR >= done_mask.size or (must_remove_full and full_mask.any()):
            index = compact(~done_mask)
            row_index = torch.from_numpy(index)
            state.reorder(row_index)
            sentences, done_mask, tokens = sentences[index], done_mask[index], tokens[row_index.to(prompt.device)]
    return [
        _truncate(row_tokens, row_logprobs, eos, max_new_tokens, length_penalty)
        for row_tokens, row_logprobs, max_new_tokens in zip(
            output_tokens.tolist(), output_logprobs.tolist(), max_lengths, strict=True
        )
    ]


def _truncate(
    tokens: list[int], logprobs: list[float], eos: int, max_new_tokens: int, length_penalty: LengthPenalty
) -> Hypothesis:
    """Make a hypothesis from the tokens up to eos or the maximum length; finished rows run until they are removed."""
    length = tokens.index(eos) + 1 if eos in tokens[:max_new_tokens] else max_new_tokens
    return make_hypothesis(tokens[:length], logprobs[:length], eos, length_penalty)


class _GreedyTrace:
    """Records greedy search in a trace: one open candidate per sentence."""

    def __init__(self, trace: Trace, length_penalty: LengthPenalty, max_lengths: Sequence[int], eos: int) -> None:
        self.trace, self.length_penalty, self.eos = trace, length_penalty, eos
        self.trace_numbers = trace.start(
            len(max_lengths),
            search="greedy",
            length_penalty=describe_penalty(length_penalty),
            max_lengths=list(max_lengths),
        )  # (B)

    def extend(
        self,
        sentences: IntArray,
        finished_mask: BoolArray,
        tokens: IntArray,
        logprobs: FloatArray,
        top_logprobs: FloatArray,
        top_tokens: IntArray,
    ) -> None:
        """Record one step: the sentence of each row (R; -1: finished), its token, and its best tokens (R, n)."""
        self.trace.record_step(np.where(sentences < 0, -1, self.trace_numbers[sentences]))
        for row in np.flatnonzero(sentences >= 0).tolist():
            sentence, chosen_token = int(sentences[row]), int(tokens[row])
            parent = int(self.trace_numbers[sentence])
            status = FINISHED if finished_mask[row] else OPEN
            self.trace_numbers[sentence] = self.trace.add(
                parent, chosen_token, float(logprobs[row]), self.length_penalty, status
            )
            for token, logprob in zip(top_tokens[row].tolist(), top_logprobs[row].tolist(), strict=True):
                if token != chosen_token:
                    self.trace.add(parent, token, logprob, self.length_penalty, DROPPED)
            if finished_mask[row]:
                self.trace.winners[sentence] = [int(self.trace_numbers[sentence])]
                self.trace.ends[sentence] = "eos" if chosen_token == self.eos else "max_new_tokens"
