"""Every family compiles as one graph and exports with dynamic batch size and length."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from tests.matrix.models import LAYERS, OPTIONS, Choice, make_model, random_tokens

TOLERANCE = 3e-5
BASE = {"score": "scaled_dot", "norm_order": "pre", "norm": "rms", "heads": "gqa", "feedforward": "swiglu"}
FAST_POSITIONS = {"encoder_decoder": "relative", "decoder_only": "rotary", "encoder_only": "sinusoidal"}
# One position kind per family and one layer by default, all with `-m slow`: tracing takes seconds for each layer.
FAST_CHOICES = [
    pytest.param(BASE | {"family": family, "position": position}, 1, id=f"{family}-{position}")
    for family, position in FAST_POSITIONS.items()
]
SLOW_CHOICES = [
    pytest.param(
        BASE | {"family": family, "position": position},
        LAYERS,
        id=f"{family}-{position}-{LAYERS}-layers",
        marks=pytest.mark.slow,
    )
    for family in OPTIONS["family"]
    for position in OPTIONS["position"]
]
all_choices = pytest.mark.parametrize(("choice", "layers"), FAST_CHOICES + SLOW_CHOICES)


def make_inputs(family: str, rows: int, source: int, target: int) -> tuple[Tensor, ...]:
    valid = torch.arange(source) < torch.arange(source, source - rows, -1).clamp(min=1)[:, None]
    match family:
        case "encoder_decoder":
            return random_tokens(rows, source, seed=3), random_tokens(rows, target, seed=4), valid
        case "decoder_only":
            return (random_tokens(rows, target, seed=4),)
        case _:
            return random_tokens(rows, source, seed=3), valid


def assert_same_outputs(compiled: Any, model: nn.Module, family: str, sizes: list[tuple[int, int, int]]) -> None:
    for size in sizes:
        arguments = make_inputs(family, *size)
        torch.testing.assert_close(compiled(*arguments), model(*arguments), atol=TOLERANCE, rtol=0)


@all_choices
@torch.no_grad()
def test_compiles_as_one_graph(choice: Choice, layers: int) -> None:
    torch.compiler.reset()
    model = make_model(choice, layers=layers)
    compiled = torch.compile(model, fullgraph=True, backend="eager", dynamic=True)
    assert_same_outputs(compiled, model, choice["family"], [(3, 7, 5), (4, 9, 8)])


@all_choices
@torch.no_grad()
def test_exports_with_changing_batch_and_length(choice: Choice, layers: int) -> None:
    model, family = make_model(choice, layers=layers), choice["family"]
    rows, source, target = Dim("rows", max=64), Dim("source", max=32), Dim("target", max=32)
    shapes: dict[str, Any] = {
        "encoder_decoder": ({0: rows, 1: source}, {0: rows, 1: target}, {0: rows, 1: source}),
        "decoder_only": ({0: rows, 1: target},),
        "encoder_only": ({0: rows, 1: source}, {0: rows, 1: source}),
    }
    exported = torch.export.export(model, make_inputs(family, 3, 7, 5), dynamic_shapes=shapes[family])
    assert_same_outputs(exported.module(), model, family, [(3, 7, 5), (5, 11, 9), (2, 4, 20)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")  # inductor's own
@pytest.mark.parametrize("family", OPTIONS["family"])
def test_inductor_gives_the_same_output_and_gradients(family: str) -> None:
    torch.compiler.reset()
    model = make_model(BASE | {"family": family, "position": "rotary"})
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    assert_same_outputs(compiled, model, family, [(3, 7, 5), (4, 9, 8)])
    arguments = make_inputs(family, 3, 7, 5)
    gradients = []
    for run in (model, compiled):
        model.zero_grad()
        run(*arguments).square().mean().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None])
    for eager_gradient, compiled_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(compiled_gradient, eager_gradient, atol=TOLERANCE, rtol=1e-4)
