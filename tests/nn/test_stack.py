"""Layers that forget their insides and compute them again: the same gradients to the bit, in less memory."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.nn.record import Record
from regard.nn.stack import Stack
from tests.matrix.models import OPTIONS, make_model, random_tokens

BASE = {"score": "scaled_dot", "norm_order": "pre", "norm": "rms", "heads": "gqa", "feedforward": "swiglu"}
DROPOUT = {"embedding": 0.1, "attention": 0.1, "sublayer": 0.1, "feedforward": 0.1}


def make_training_model(family: str, checkpoint_activations: bool) -> nn.Module:
    model = make_model(BASE | {"family": family, "position": "rotary"}, dropout=DROPOUT).train()
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpoint_activations = checkpoint_activations
    return model


def make_inputs(family: str) -> tuple[Tensor, ...]:
    source, target = random_tokens(3, 8, seed=1), random_tokens(3, 6, seed=2)
    return (source, target) if family == "encoder_decoder" else (target,)


def run_backward(model: nn.Module, family: str, **autocast: Any) -> tuple[Tensor, dict[str, Tensor], int]:
    """The logits, the gradients, and how many numbers were kept for them."""
    saved = 0

    def count_saved(tensor: Tensor) -> Tensor:
        nonlocal saved
        saved += tensor.numel()
        return tensor

    torch.manual_seed(5)
    with torch.autograd.graph.saved_tensors_hooks(count_saved, lambda tensor: tensor):
        with torch.autocast("cpu", **autocast):
            logits = model(*make_inputs(family))
        forward_saved = saved
        logits.float().logsumexp(-1).square().sum().backward()
    return logits, {n: p.grad for n, p in model.named_parameters() if p.grad is not None}, forward_saved


@pytest.mark.parametrize("autocast", [{"enabled": False}, {"dtype": torch.bfloat16}], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("family", OPTIONS["family"])
def test_the_same_gradients_to_the_bit_with_dropout_on(family: str, autocast: dict[str, Any]) -> None:
    logits, gradients, saved = run_backward(
        make_training_model(family, checkpoint_activations=False), family, **autocast
    )
    random_after = torch.rand(1)
    checkpointed_logits, checkpointed_gradients, checkpointed_saved = run_backward(
        make_training_model(family, checkpoint_activations=True), family, **autocast
    )
    assert torch.equal(torch.rand(1), random_after)  # and the dice of the next batch fall the same
    assert torch.equal(checkpointed_logits, logits)
    assert checkpointed_gradients.keys() == gradients.keys()
    for name, gradient in gradients.items():
        assert torch.equal(checkpointed_gradients[name], gradient), name
    assert checkpointed_saved < 0.5 * saved


def test_only_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    net = make_training_model("decoder_only", checkpoint_activations=True)
    monkeypatch.setattr("regard.nn.stack.checkpoint", None)
    with pytest.raises(TypeError):
        net(*make_inputs("decoder_only"))
    net(*make_inputs("decoder_only"), record=Record())  # a record sees every layer once
    net.eval()(*make_inputs("decoder_only"))


@pytest.mark.slow
def test_compiles_as_one_graph() -> None:
    torch.compiler.reset()
    model: nn.Module = make_model(
        BASE | {"family": "encoder_decoder", "position": "rotary"}, layers=1
    ).train()  # no dropout
    eager_logits, gradients, _ = run_backward(model, "encoder_decoder", enabled=False)
    gradients = {name: gradient.clone() for name, gradient in gradients.items()}
    model.zero_grad()
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpoint_activations = True
    compiled: Any = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    compiled_logits, _, _ = run_backward(compiled, "encoder_decoder", enabled=False)
    torch.testing.assert_close(compiled_logits, eager_logits, atol=3e-5, rtol=0)
    for name, gradient in gradients.items():
        torch.testing.assert_close(model.get_parameter(name).grad, gradient, atol=1e-3, rtol=1e-3, msg=name)
