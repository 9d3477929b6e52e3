"""Query, key and value from one product under a CPU's autocast: the heads and gradients that three would give."""

import pytest
import torch
from torch import Tensor, nn

from regard.nn.attention import SelfAttention
from regard.nn.scores import Score

WIDTH, HEADS, GROUPS, KEY, VALUE = 24, 4, 2, 6, 5


def made(biases: tuple[bool, bool, bool], *, norms: bool = False) -> SelfAttention:
    torch.manual_seed(1)
    score = Score(KEY**-0.5)
    return SelfAttention(
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


def learned(attention: SelfAttention, *, joined: bool) -> tuple[list[Tensor], list[Tensor | None]]:
    """Heads, and the gradients of all parameters to some sum of them."""
    x = torch.randn(3, 7, WIDTH, generator=torch.Generator().manual_seed(2))
    attention.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        heads = attention.ask_and_answer(x) if joined else (attention.ask(x), *attention.answer(x))
    torch.stack([(head.float() * (index + 1)).cos().sum() for index, head in enumerate(heads)]).sum().backward()
    return [head.detach() for head in heads], [one.grad for one in attention.parameters()]


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("norms", [True, False])
@pytest.mark.parametrize("biases", [(True, True, True), (False, False, False), (True, False, True)])
def test_one_product_gives_the_heads_and_gradients_of_three(
    biases: tuple[bool, bool, bool], norms: bool, wide: bool
) -> None:
    attention = made(biases, norms=norms)
    attention.in_float32 = wide
    together, gradients = learned(attention, joined=True)
    apart, wanted = learned(attention, joined=False)
    for one, other in zip(together, apart, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)
    for got, right in zip(gradients, wanted, strict=True):
        assert (got is None) == (right is None)
        if got is not None and right is not None:
            torch.testing.assert_close(got, right, rtol=0.02, atol=0.05)


def test_heads_that_stay_float32_are_float32_before_they_are_turned() -> None:
    attention = made((True, True, True))
    attention.in_float32 = True
    assert {head.dtype for head in learned(attention, joined=True)[0]} == {torch.float32}
    attention.in_float32 = False
    assert {head.dtype for head in learned(attention, joined=True)[0]} == {torch.bfloat16}


def test_a_projection_that_is_no_plain_linear_is_asked_itself() -> None:
    class Doubled(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    attention = made((False, False, False))
    plain = attention.value
    attention.value = Doubled(WIDTH, GROUPS * VALUE, bias=False)
    attention.value.load_state_dict(plain.state_dict())
    together, _ = learned(attention, joined=True)
    attention.value = plain
    apart, _ = learned(attention, joined=False)
    torch.testing.assert_close(together[2], 2 * apart[2], rtol=0.02, atol=0.02)


def test_float32_takes_three_products_to_the_bit() -> None:
    attention = made((True, True, True))
    x = torch.randn(2, 5, WIDTH)
    wanted = (attention.ask(x), *attention.answer(x))
    assert all(torch.equal(one, other) for one, other in zip(attention.ask_and_answer(x), wanted, strict=True))
