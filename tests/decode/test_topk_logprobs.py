"""topk_logprobs: the CPU fast path compared with log_softmax and topk."""

import pytest
import torch
from torch import Tensor

from regard.decode import topk
from regard.decode.topk import topk_logprobs

ROWS, VOCABULARY_SIZE = 40, 1003  # enough elements for the CPU fast path


def reference_topk_logprobs(logits: Tensor, k: int, suppressed: Tensor | None) -> tuple[Tensor, Tensor]:
    logprobs = logits.double().log_softmax(dim=-1)
    if suppressed is not None:
        logprobs[:, suppressed] = -torch.inf
    values, tokens = logprobs.topk(k, dim=1)
    return values, tokens


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("shift", [0.0, 500.0, -500.0])
@pytest.mark.parametrize("has_suppressed", [False, True])
def test_logprobs_equal_log_softmax(count: int, scale: float, shift: float, has_suppressed: bool) -> None:
    logits = torch.randn(ROWS, VOCABULARY_SIZE, generator=torch.Generator().manual_seed(0)) * scale + shift
    suppressed = torch.tensor([0, 5, VOCABULARY_SIZE - 1]) if has_suppressed else None
    if has_suppressed:
        logits[3, 5] += 200.0  # by far the likeliest token, and suppressed: the others keep their small share
    assert logits.numel() >= topk.MIN_ELEMENTS
    expected, expected_tokens = reference_topk_logprobs(logits, count, suppressed)
    logprobs, tokens = topk_logprobs(logits.clone(), count, suppressed)
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
