"""`torch.nn.TransformerEncoder` and `TransformerDecoder` compute what our stacks compute with their weights."""

import itertools

import pytest
import torch
from torch import Tensor, nn

from regard.exchange import names
from regard.exchange.rules import Table, to_ours, to_theirs
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.nn.masks import causal, padding
from regard.nn.stack import Stack
from tests.exchange.models import (
    HEADS,
    HIDDEN,
    TOLERANCE,
    WIDTH,
    WORDS,
    batch,
    difference,
    drawn,
    gradient_difference,
    model,
    stack,
)

TOKENS = {"kind": "tokens", "vocabulary": WORDS}
SHAPES = list(itertools.product((True, False), ("relu", "gelu"), (True, False)))
shapes = pytest.mark.parametrize(("norm_first", "activation", "final_norm"), SHAPES)


def _encoders(norm_first: bool, activation: str, final_norm: bool) -> tuple[nn.Module, Stack, Table]:
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
    )
    norm = nn.LayerNorm(WIDTH) if final_norm else None
    theirs = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)  # nested tensors warn: a prototype
    feedforward = {"kind": "plain", "hidden": HIDDEN, "activation": activation}
    encoder = stack("pre" if norm_first else "post", final_norm=final_norm, feedforward=feedforward)
    head = {"kind": "vectors"}
    whole = model({"family": "encoder_only", "task": "embed", "source": TOKENS, "encoder": encoder, "head": head})
    assert isinstance(whole, EncoderOnly)
    return _same_weights(theirs, whole.encoder, names.torch_encoder(final_norm=final_norm))


def _decoders(norm_first: bool, activation: str, final_norm: bool) -> tuple[nn.Module, Stack, Table]:
    layer = nn.TransformerDecoderLayer(
        WIDTH, HEADS, HIDDEN, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
    )
    theirs = nn.TransformerDecoder(layer, 2, nn.LayerNorm(WIDTH) if final_norm else None)
    feedforward = {"kind": "plain", "hidden": HIDDEN, "activation": activation}
    common = stack("pre" if norm_first else "post", final_norm=final_norm, feedforward=feedforward)
    decoder = common | {"cross": {"heads": HEADS}}
    whole = model(
        {"family": "encoder_decoder", "source": TOKENS, "target": TOKENS, "encoder": common, "decoder": decoder}
    )
    assert isinstance(whole, EncoderDecoder)
    return _same_weights(theirs, whole.decoder, names.torch_decoder(final_norm=final_norm))


def _same_weights(theirs: nn.Module, ours: Stack, table: Table) -> tuple[nn.Module, Stack, Table]:
    drawn(theirs)
    ours.load_state_dict(to_ours(table, theirs.state_dict()))
    return theirs, ours, table


def _vectors(length: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random vectors (B, T, D), and which of them are real."""
    tokens, real = batch(length, seed)
    return torch.randn(*tokens.shape, WIDTH, generator=torch.Generator().manual_seed(seed)), real


def _encoded(theirs: nn.Module, ours: Stack) -> tuple[Tensor, Tensor, Tensor]:
    x, real = _vectors(9, seed=1)
    return theirs(x, src_key_padding_mask=~real), ours(x, padding(real)), real


@shapes
@pytest.mark.parametrize("fast", [True, False])
def test_encoder(norm_first: bool, activation: str, final_norm: bool, fast: bool) -> None:
    theirs, ours, _ = _encoders(norm_first, activation, final_norm)
    with torch.set_grad_enabled(not fast):  # without gradients torch takes its fused path
        assert difference(*_encoded(theirs, ours)) < TOLERANCE


@shapes
def test_decoder(norm_first: bool, activation: str, final_norm: bool) -> None:
    theirs, ours, _ = _decoders(norm_first, activation, final_norm)
    x, real = _vectors(8, seed=2)
    memory, memory_real = _vectors(11, seed=3)
    hidden = ~torch.ones(8, 8, dtype=torch.bool).tril()
    with torch.no_grad():
        wanted = theirs(x, memory, tgt_mask=hidden, tgt_is_causal=True, memory_key_padding_mask=~memory_real)
        assert difference(wanted, ours(x, causal(), None, memory, padding(memory_real)), real) < TOLERANCE


@shapes
def test_encoder_gradients(norm_first: bool, activation: str, final_norm: bool) -> None:
    theirs, ours, table = _encoders(norm_first, activation, final_norm)
    assert gradient_difference(table, theirs, ours, *_encoded(theirs, ours)) < TOLERANCE


@pytest.mark.parametrize("final_norm", [True, False])
def test_there_and_back(final_norm: bool) -> None:
    pairs = (_encoders(True, "relu", final_norm), _decoders(True, "relu", final_norm))
    for theirs, _, table in pairs:
        before = theirs.state_dict()
        after = to_theirs(table, to_ours(table, before))
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)
