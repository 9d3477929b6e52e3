"""Attention under autocast: the precision of its heads, and equality with the reference classes."""

import pytest
import torch
from torch import Tensor, nn

from regard.nn.attend import ResolvedMask
from regard.nn.attention import SelfAttention
from regard.nn.autocast_attention import AutocastSelfAttention
from regard.nn.scores import ScoreFunction

WIDTH, HEADS, GROUPS, KEY, VALUE = 24, 4, 2, 6, 5
NO_MASK = ResolvedMask(False, None, None, None)


def make_attention(kind: type[SelfAttention] = AutocastSelfAttention, *, norms: bool = False) -> SelfAttention:
    torch.manual_seed(1)
    return kind(
        "self",
        query=nn.Linear(WIDTH, HEADS * KEY),
        key=nn.Linear(WIDTH, GROUPS * KEY),
        value=nn.Linear(WIDTH, GROUPS * VALUE),
        output=nn.Linear(HEADS * VALUE, WIDTH),
        key_dim=KEY,
        value_dim=VALUE,
        score=ScoreFunction(KEY**-0.5),
        query_norm=nn.LayerNorm(KEY) if norms else None,
        key_norm=nn.LayerNorm(KEY) if norms else None,
        dropout=0.0,
    )


def attend_and_differentiate(attention: SelfAttention) -> list[Tensor]:
    """Output and gradients of all parameters."""
    x = torch.randn(3, 7, WIDTH, generator=torch.Generator().manual_seed(2))
    query, (key, value) = attention.project_query(x), attention.project_key_value(x)
    output = attention.attend(query, key, value, NO_MASK, None)
    output.float().cos().sum().backward()
    return [output.detach(), *(parameter.grad for parameter in attention.parameters() if parameter.grad is not None)]


@pytest.mark.parametrize("norms", [True, False])
def test_float32_attention_is_close_to_the_reference_under_autocast(norms: bool) -> None:
    upcast = make_attention(norms=norms)
    upcast.should_upcast = True  # type: ignore[assignment]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = attend_and_differentiate(upcast)
        expected = attend_and_differentiate(make_attention(SelfAttention, norms=norms))
    assert len(actual) == len(expected) == 1 + len(list(upcast.parameters()))
    for tensor, expected_tensor in zip(actual, expected, strict=True):
        assert tensor.dtype == expected_tensor.dtype
        torch.testing.assert_close(tensor, expected_tensor, rtol=0.05, atol=0.05)


def test_heads_are_upcast_before_they_are_split() -> None:
    attention, x = make_attention(), torch.randn(2, 5, WIDTH)
    for should_upcast, dtype in ((True, torch.float32), (False, torch.bfloat16)):
        attention.should_upcast = should_upcast  # type: ignore[assignment]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            heads = (attention.project_query(x), *attention.project_key_value(x))
        assert {head.dtype for head in heads} == {dtype}


def test_a_replaced_projection_is_called() -> None:
    class Doubled(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    attention, x = make_attention(), torch.randn(2, 5, WIDTH)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        expected = attention.project_key_value(x)[1]
        doubled = Doubled(WIDTH, GROUPS * VALUE)
        doubled.load_state_dict(attention.value.state_dict())
        attention.value = doubled
        assert torch.equal(attention.project_key_value(x)[1], 2 * expected)


@pytest.mark.parametrize("should_upcast", [True, False])
def test_without_autocast_both_classes_are_equal_to_the_bit(should_upcast: bool) -> None:
    attention = make_attention()
    attention.should_upcast = should_upcast  # type: ignore[assignment]
    expected = attend_and_differentiate(make_attention(SelfAttention))
    for tensor, expected_tensor in zip(attend_and_differentiate(attention), expected, strict=True):
        assert torch.equal(tensor, expected_tensor)
