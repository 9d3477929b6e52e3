"""`exportable_to` claims exactly the features that the parity tests cover."""

from collections.abc import Iterator
from typing import get_args

import pytest

from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig
from regard.config.parts import Activation, StackConfig, attention_stack
from regard.exchange.exportable import exportable_to
from regard.exchange.huggingface.architecture_rules import ArchitectureRules
from regard.exchange.huggingface.architectures import ARCHITECTURES
from regard.exchange.rules import describe_bias, describe_position
from tests.exchange.cases import CASES
from tests.exchange.models import parse_settings

MODELS = {name: parse_settings(case.settings) for name, case in CASES.items()}
NAMES = {name: case.architecture for name, case in CASES.items()}
WRITTEN = [name for name, architecture in ARCHITECTURES.items() if architecture.is_written]


@pytest.mark.parametrize("name", CASES)
def test_every_tested_model_is_claimed(name: str) -> None:
    verdicts = {verdict.target: verdict for verdict in exportable_to(MODELS[name])}
    assert verdicts[f"huggingface:{NAMES[name]}"].obstacles == ()


def test_every_architecture_is_tested() -> None:
    assert set(NAMES.values()) == set(WRITTEN)


@pytest.mark.parametrize("architecture", WRITTEN)
def test_every_claimed_feature_is_tested(architecture: str) -> None:
    models = [model for name, model in MODELS.items() if NAMES[name] == architecture]
    tested = {
        feature
        for model in models
        for stack in _list_stacks(model)
        for feature in _iter_tested_features(stack, model.d_model)
    }
    assert tested == set(_iter_claimed_features(ARCHITECTURES[architecture].rules))


def _list_stacks(model: AnyModelConfig) -> tuple[StackConfig, ...]:
    if isinstance(model, EncoderDecoderConfig):
        return attention_stack(model.encoder), attention_stack(model.decoder)
    return (attention_stack(model.decoder if isinstance(model, DecoderOnlyConfig) else model.encoder),)


def _iter_tested_features(stack: StackConfig, width: int) -> Iterator[str]:
    """List the features of a stack that differ between architectures."""
    attention, feedforward = stack.attention, stack.feedforward
    yield f"position {describe_position(stack.position)}"
    yield f"feedforward {feedforward.kind} {feedforward.activation}"
    yield f"feedforward bias {feedforward.bias}"
    yield f"bias on {describe_bias(attention)}"
    if attention.groups < attention.heads:
        yield "grouped"
    if attention.dims(width)[0] * attention.heads != width:
        yield "free key_dim"


def _iter_claimed_features(shape: ArchitectureRules) -> Iterator[str]:
    """List the same features, as `exportable_to` claims them for an architecture."""
    yield from (f"position {position}" for position in shape.positions)
    for feedforward in shape.feedforwards:  # "gated gelu_tanh", or "gated" with any activation
        kind, *activations = feedforward.split()
        yield from (f"feedforward {kind} {activation}" for activation in activations or get_args(Activation))
    biases = (True, False) if shape.feedforward_bias is None else (shape.feedforward_bias,)
    yield from (f"feedforward bias {bias}" for bias in biases)
    yield from (f"bias on {bias}" for bias in shape.bias)
    if shape.grouped:
        yield "grouped"
    if shape.free_key_dim:
        yield "free key_dim"
