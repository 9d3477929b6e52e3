"""The two ways to attend, at their edges."""

import pytest
import torch

from regard.nn.attend import eager_attention, resolve_mask, sdpa
from regard.nn.masks import padding
from regard.nn.scores import ScoreFunction


def test_who_sees_nobody_gets_zeros_and_gradients_either_way() -> None:
    query, key, value = (torch.randn(2, 4, 3, 8, requires_grad=True) for _ in range(3))
    valid = torch.tensor([[True, True, False], [False, False, False]])
    index = torch.zeros(1, 1, dtype=torch.long)
    mask = resolve_mask(padding(valid), index, index, is_square=False)
    eager_output, weights = eager_attention(query, key, value, mask, ScoreFunction(0.3), dropout=0.0)
    fused_output = sdpa(query, key, value, mask, 0.3, dropout=0.0)
    torch.testing.assert_close(eager_output, fused_output, atol=1e-6, rtol=0)
    assert eager_output[1].abs().max() == 0
    assert weights[1].abs().max() == 0
    eager_output.sum().backward()
    for tensor in (query, key, value):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


@pytest.mark.parametrize("way", ["explicit", "fused"])
def test_dropout_on_the_weights(way: str) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 2, 50, 8), torch.randn(1, 2, 50, 8), torch.ones(1, 2, 50, 8)
    mask = resolve_mask(
        padding(torch.ones(1, 50, dtype=torch.bool)), *(torch.zeros(1, 1, dtype=torch.long),) * 2, is_square=False
    )
    if way == "explicit":
        output = eager_attention(query, key, value, mask, ScoreFunction(0.1), dropout=0.5)[0]
    else:
        output = sdpa(query, key, value, mask, 0.1, dropout=0.5)
    assert output.std() > 0.01  # without dropout every row sums to one
    assert float(output.mean()) == pytest.approx(1, abs=0.05)


def test_a_bfloat16_model_with_a_float32_bias() -> None:
    query, key, value = (torch.randn(1, 2, 3, 8, dtype=torch.bfloat16) for _ in range(3))
    index, bias = torch.arange(3)[None], torch.randn(1, 2, 3, 3)
    mask = resolve_mask(padding(torch.ones(1, 3, dtype=torch.bool)), index, index, is_square=True, bias=bias)
    output, weights = eager_attention(query, key, value, mask, ScoreFunction(0.3), dropout=0.0)
    assert output.dtype == weights.dtype == torch.bfloat16
    torch.testing.assert_close(output, sdpa(query, key, value, mask, 0.3, dropout=0.0), atol=0.05, rtol=0.05)
