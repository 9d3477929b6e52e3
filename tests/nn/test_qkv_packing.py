"""Query, key and value from one product under a CPU's autocast: the heads and gradients that three would give."""

import pytest
import torch
from torch import Tensor, nn

from regard.nn.autocast_attention import AutocastSelfAttention
from regard.nn.scores import Score

WIDTH, HEADS, GROUPS, KEY, VALUE = 24, 4, 2, 6, 5


def make_attention(biases: tuple[bool, bool, bool], *, norms: bool = False) -> AutocastSelfAttention:
    torch.manual_seed(1)
    score = Score(KEY**-0.5)
    return AutocastSelfAttention(
        "self",
        0,
        query=nn.Linear(WIDTH, HEADS * KEY, bias=biases[0]),
        key=nn.Linear(WIDTH, GROUPS * KEY, bias=biases[1]),
        value=nn.Linear(WIDTH, GROUPS * VALUE, bias=biases[2]),
        output=nn.Linear(HEADS * VALUE, WIDTH),
        key_dim=KEY,
        value_dim=VALUE,
        score=score,
        query_norm=nn.LayerNorm(KEY) if norms else None,
        key_norm=nn.LayerNorm(KEY) if norms else None,
        dropout=0.0,
    )


def compute_gradients(attention: AutocastSelfAttention, *, packed: bool) -> tuple[list[Tensor], list[Tensor | None]]:
    """Heads, and the gradients of all parameters to some sum of them."""
    x = torch.randn(3, 7, WIDTH, generator=torch.Generator().manual_seed(2))
    attention.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        heads = attention.project_qkv(x) if packed else (attention.project_query(x), *attention.project_key_value(x))
    torch.stack([(head.float() * (index + 1)).cos().sum() for index, head in enumerate(heads)]).sum().backward()
    return [head.detach() for head in heads], [parameter.grad for parameter in attention.parameters()]


@pytest.mark.parametrize("should_upcast", [True, False])
@pytest.mark.parametrize("norms", [True, False])
@pytest.mark.parametrize("biases", [(True, True, True), (False, False, False), (True, False, True)])
def test_one_product_gives_the_heads_and_gradients_of_three(
    biases: tuple[bool, bool, bool], norms: bool, should_upcast: bool
) -> None:
    attention = make_attention(biases, norms=norms)
    attention.should_upcast = should_upcast
    packed_heads, gradients = compute_gradients(attention, packed=True)
    separate_heads, expected_gradients = compute_gradients(attention, packed=False)
    for actual, expected in zip(packed_heads, separate_heads, strict=True):
        assert actual.dtype == expected.dtype
        torch.testing.assert_close(actual, expected, rtol=0.02, atol=0.02)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        assert (gradient is None) == (expected_gradient is None)
        if gradient is not None and expected_gradient is not None:
            torch.testing.assert_close(gradient, expected_gradient, rtol=0.02, atol=0.05)


def test_heads_that_stay_float32_are_float32_before_they_are_turned() -> None:
    attention = make_attention((True, True, True))
    attention.should_upcast = True
    assert {head.dtype for head in compute_gradients(attention, packed=True)[0]} == {torch.float32}
    attention.should_upcast = False
    assert {head.dtype for head in compute_gradients(attention, packed=True)[0]} == {torch.bfloat16}


def test_a_projection_that_is_no_plain_linear_is_called_itself() -> None:
    class Doubled(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    attention = make_attention((False, False, False))
    plain = attention.value
    attention.value = Doubled(WIDTH, GROUPS * VALUE, bias=False)
    attention.value.load_state_dict(plain.state_dict())
    packed_heads, _ = compute_gradients(attention, packed=True)
    attention.value = plain
    separate_heads, _ = compute_gradients(attention, packed=False)
    torch.testing.assert_close(packed_heads[2], 2 * separate_heads[2], rtol=0.02, atol=0.02)


def test_float32_takes_three_products_to_the_bit() -> None:
    attention = make_attention((True, True, True))
    x = torch.randn(2, 5, WIDTH)
    expected_heads = (attention.project_query(x), *attention.project_key_value(x))
    assert all(
        torch.equal(actual, expected) for actual, expected in zip(attention.project_qkv(x), expected_heads, strict=True)
    )
