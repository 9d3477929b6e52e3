"""Blocked argmax and topk, compared with those of torch."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.decode.topk import MIN_ELEMENTS, argmax, compact, to_numpy, topk, topk_logprobs


@pytest.mark.parametrize("vocabulary_size", [5, 255, 256, 640, 1000, 4097])
@pytest.mark.parametrize("k", [1, 4])
def test_topk_equals_torch_topk(vocabulary_size: int, k: int) -> None:
    scores = torch.randn(200, vocabulary_size, generator=torch.Generator().manual_seed(vocabulary_size))
    scores[0, -1] = scores[1, -2] = scores[2, 0] = 9.0  # also in the last, short block
    scores[3] = float("-inf")
    scores[3, -1] = -5.0  # a row with one possible token
    values, indices = topk(scores, k)
    assert torch.equal(values, scores.topk(k).values)
    assert torch.equal(scores.gather(1, indices), values)
    finite_mask = values > float("-inf")
    assert all(
        len(set(row[row_mask].tolist())) == int(row_mask.sum())
        for row, row_mask in zip(indices, finite_mask, strict=True)
    )
    assert torch.equal(argmax(scores)[:, 0], scores.argmax(dim=1))


def test_impossible_tokens_have_valid_ids() -> None:
    generator = torch.Generator().manual_seed(1)
    for vocabulary_size in (641, 642, 644, 648):
        scores = torch.full((200, vocabulary_size), float("-inf"))
        scores[:, torch.randperm(vocabulary_size, generator=generator)[:3]] = 1.0
        scores[:, -1] = 2.0
        values, indices = topk(scores, 8)
        assert int(indices.max()) < vocabulary_size
        assert torch.equal(values, scores.topk(8).values)


@pytest.mark.parametrize("vocabulary_size", [8, 1000])
def test_argmax_takes_lowest_id_of_equal_scores(vocabulary_size: int) -> None:
    scores = torch.zeros(2, vocabulary_size)
    scores[1, 3:] = 1.0
    assert argmax(scores).tolist() == [[0], [3]]


def test_compact_moves_last_rows_into_gaps() -> None:
    for keep_mask in itertools.product((True, False), repeat=5):
        index = compact(np.array(keep_mask)).tolist()
        assert sorted(index) == [row for row in range(5) if keep_mask[row]]
        assert all(source == row or not keep_mask[row] for row, source in enumerate(index))


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_to_numpy_keeps_values(kind: torch.dtype) -> None:
    logprobs, tokens = torch.tensor([[-0.5, -1.5]], dtype=kind), torch.tensor([[37_000, 3]])
    host_logprobs, host_tokens = to_numpy(logprobs, tokens)
    assert (host_logprobs.tolist(), host_tokens.tolist()) == ([[-0.5, -1.5]], [[37_000, 3]])
    assert host_logprobs.dtype == np.dtype(np.float64)
    assert host_tokens.dtype == np.dtype(np.int64)


ROWS, VOCABULARY_SIZE = 40, 1003  # enough elements for the CPU fast path


def reference_topk_logprobs(logits: Tensor, k: int, suppress_tokens: Tensor | None) -> tuple[Tensor, Tensor]:
    logprobs = logits.double().log_softmax(dim=-1)
    if suppress_tokens is not None:
        logprobs[:, suppress_tokens] = -torch.inf
    values, tokens = logprobs.topk(k, dim=1)
    return values, tokens


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("shift", [0.0, 500.0, -500.0])
@pytest.mark.parametrize("has_suppressed", [False, True])
def test_logprobs_equal_log_softmax(count: int, scale: float, shift: float, has_suppressed: bool) -> None:
    logits = torch.randn(ROWS, VOCABULARY_SIZE, generator=torch.Generator().manual_seed(0)) * scale + shift
    suppress_tokens = torch.tensor([0, 5, VOCABULARY_SIZE - 1]) if has_suppressed else None
    if has_suppressed:
        logits[3, 5] += 200.0  # by far the likeliest token, and suppressed: the others keep their small share
    assert logits.numel() >= MIN_ELEMENTS
    expected, expected_tokens = reference_topk_logprobs(logits, count, suppress_tokens)
    logprobs, tokens = topk_logprobs(logits.clone(), count, suppress_tokens)
    assert torch.equal(tokens, expected_tokens)
    torch.testing.assert_close(logprobs.double(), expected, atol=2e-4 if shift else 2e-5, rtol=1e-6)


def test_batch_size_does_not_change_result() -> None:
    logits = torch.randn(ROWS, VOCABULARY_SIZE, generator=torch.Generator().manual_seed(1)) * 3
    batched, tokens = topk_logprobs(logits.clone(), 4)
    for row in range(ROWS):
        alone, token = topk_logprobs(logits[row : row + 1].clone(), 4)
        assert torch.equal(token[0], tokens[row])
        torch.testing.assert_close(alone[0], batched[row], atol=1e-5, rtol=0)


def test_nan_is_not_masked() -> None:
    logits = torch.randn(ROWS, VOCABULARY_SIZE)
    logits[2, 7] = torch.nan
    logprobs, _ = topk_logprobs(logits, 1)
    assert logprobs[2].isnan().all()
