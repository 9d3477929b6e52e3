"""Layers that forget their insides and compute them again: the same gradients to the bit, in less memory."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.nn.record import Record
from regard.nn.stack import Stack
from tests.matrix.models import OPTIONS, make_model, random_tokens

BASE = {"score": "scaled_dot", "placement": "pre", "norm": "rms", "heads": "gqa", "feedforward": "swiglu"}
DROPOUT = {"embedding": 0.1, "attention": 0.1, "sublayer": 0.1, "feedforward": 0.1}


def model(family: str, recompute: bool) -> nn.Module:
    built = make_model(BASE | {"family": family, "position": "rotary"}, dropout=DROPOUT).train()
    for module in built.modules():
        if isinstance(module, Stack):
            module.recompute = recompute
    return built


def given(family: str) -> tuple[Tensor, ...]:
    source, target = random_tokens(3, 8, seed=1), random_tokens(3, 6, seed=2)
    return (source, target) if family == "encoder_decoder" else (target,)


def learn(net: nn.Module, family: str, **autocast: Any) -> tuple[Tensor, dict[str, Tensor], int]:
    """The logits, the gradients, and how many numbers were kept for them."""
    kept = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.numel()
        return tensor

    torch.manual_seed(5)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        with torch.autocast("cpu", **autocast):
            logits = net(*given(family))
        forward = kept
        logits.float().logsumexp(-1).square().sum().backward()
    return logits, {n: p.grad for n, p in net.named_parameters() if p.grad is not None}, forward


@pytest.mark.parametrize("autocast", [{"enabled": False}, {"dtype": torch.bfloat16}], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("family", OPTIONS["family"])
def test_the_same_gradients_to_the_bit_with_dropout_on(family: str, autocast: dict[str, Any]) -> None:
    logits, gradients, kept = learn(model(family, recompute=False), family, **autocast)
    after = torch.rand(1)
    again, same, fewer = learn(model(family, recompute=True), family, **autocast)
    assert torch.equal(torch.rand(1), after)  # and the dice of the next batch fall the same
    assert torch.equal(again, logits)
    assert same.keys() == gradients.keys()
    for name, gradient in gradients.items():
        assert torch.equal(same[name], gradient), name
    assert fewer < 0.5 * kept


def test_only_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    net = model("decoder_only", recompute=True)
    monkeypatch.setattr("regard.nn.stack.checkpoint", None)
    with pytest.raises(TypeError):
        net(*given("decoder_only"))
    net(*given("decoder_only"), record=Record())  # who looks sees every layer once
    net.eval()(*given("decoder_only"))


@pytest.mark.slow
def test_compiles_as_one_graph() -> None:
    torch.compiler.reset()
    net: nn.Module = make_model(
        BASE | {"family": "encoder_decoder", "position": "rotary"}, layers=1
    ).train()  # no dropout
    plain, gradients, _ = learn(net, "encoder_decoder", enabled=False)
    gradients = {name: gradient.clone() for name, gradient in gradients.items()}
    net.zero_grad()
    for module in net.modules():
        if isinstance(module, Stack):
            module.recompute = True
    compiled: Any = torch.compile(net, fullgraph=True, backend="aot_eager", dynamic=True)
    found, _, _ = learn(compiled, "encoder_decoder", enabled=False)
    torch.testing.assert_close(found, plain, atol=3e-5, rtol=0)
    for name, gradient in gradients.items():
        torch.testing.assert_close(net.get_parameter(name).grad, gradient, atol=1e-3, rtol=1e-3, msg=name)
