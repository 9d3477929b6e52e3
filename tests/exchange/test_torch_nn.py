"""`torch.nn.TransformerEncoder` and `TransformerDecoder` give the same outputs as our stacks with their weights."""

import itertools

import pytest
import torch
from bench import torch_nn
from torch import Tensor, nn

from regard.exchange.mapping import to_hf, to_regard
from regard.exchange.weight_map import WeightMap
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.nn.masks import causal, padding
from regard.nn.stack import Stack
from tests.exchange.models import (
    HEADS,
    HIDDEN,
    TOLERANCE,
    VOCABULARY,
    WIDTH,
    build_model,
    make_batch,
    make_stack,
    max_difference,
    max_gradient_difference,
    randomize_weights,
)

TOKENS = {"kind": "tokens", "vocabulary": VOCABULARY}
SHAPES = list(itertools.product((True, False), ("relu", "gelu"), (True, False)))
shapes = pytest.mark.parametrize(("norm_first", "activation", "final_norm"), SHAPES)


def _make_encoders(norm_first: bool, activation: str, final_norm: bool) -> tuple[nn.Module, Stack, WeightMap]:
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
    )
    norm = nn.LayerNorm(WIDTH) if final_norm else None
    theirs = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)  # nested tensors warn
    feedforward = {"kind": "plain", "d_ff": HIDDEN, "activation": activation}
    encoder = make_stack("pre" if norm_first else "post", final_norm=final_norm, feedforward=feedforward)
    head = {"kind": "none"}
    built = build_model(
        {"family": "encoder_only", "task": "embedding", "source": TOKENS, "encoder": encoder, "head": head}
    )
    assert isinstance(built, EncoderOnly)
    return _copy_weights(theirs, built.encoder, torch_nn.torch_encoder(final_norm=final_norm))


def _make_decoders(norm_first: bool, activation: str, final_norm: bool) -> tuple[nn.Module, Stack, WeightMap]:
    layer = nn.TransformerDecoderLayer(
        WIDTH, HEADS, HIDDEN, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
    )
    theirs = nn.TransformerDecoder(layer, 2, nn.LayerNorm(WIDTH) if final_norm else None)
    feedforward = {"kind": "plain", "d_ff": HIDDEN, "activation": activation}
    common = make_stack("pre" if norm_first else "post", final_norm=final_norm, feedforward=feedforward)
    decoder = common | {"cross": {"heads": HEADS}}
    built = build_model(
        {"family": "encoder_decoder", "source": TOKENS, "target": TOKENS, "encoder": common, "decoder": decoder}
    )
    assert isinstance(built, EncoderDecoder)
    return _copy_weights(theirs, built.decoder, torch_nn.torch_decoder(final_norm=final_norm))


def _copy_weights(theirs: nn.Module, ours: Stack, weight_map: WeightMap) -> tuple[nn.Module, Stack, WeightMap]:
    randomize_weights(theirs)
    ours.load_state_dict(to_regard(weight_map, theirs.state_dict()))
    return theirs, ours, weight_map


def _make_hidden_states(length: int, seed: int) -> tuple[Tensor, Tensor]:
    """Make random hidden states (B, T, D) and their padding mask."""
    tokens, valid = make_batch(length, seed)
    return torch.randn(*tokens.shape, WIDTH, generator=torch.Generator().manual_seed(seed)), valid


def _encode_both(theirs: nn.Module, ours: Stack) -> tuple[Tensor, Tensor, Tensor]:
    x, valid = _make_hidden_states(9, seed=1)
    return theirs(x, src_key_padding_mask=~valid), ours(x, padding(valid)), valid


@shapes
@pytest.mark.parametrize("with_gradients", [True, False])
def test_encoder(norm_first: bool, activation: str, final_norm: bool, with_gradients: bool) -> None:
    theirs, ours, _ = _make_encoders(norm_first, activation, final_norm)
    with torch.set_grad_enabled(with_gradients):  # without gradients torch uses its fused kernel
        assert max_difference(*_encode_both(theirs, ours)) < TOLERANCE


@shapes
def test_decoder(norm_first: bool, activation: str, final_norm: bool) -> None:
    theirs, ours, _ = _make_decoders(norm_first, activation, final_norm)
    x, valid = _make_hidden_states(8, seed=2)
    memory, memory_valid = _make_hidden_states(11, seed=3)
    causal_mask = ~torch.ones(8, 8, dtype=torch.bool).tril()
    with torch.no_grad():
        expected = theirs(x, memory, tgt_mask=causal_mask, tgt_is_causal=True, memory_key_padding_mask=~memory_valid)
        assert max_difference(expected, ours(x, causal(), None, memory, padding(memory_valid)), valid) < TOLERANCE


@shapes
def test_encoder_gradients(norm_first: bool, activation: str, final_norm: bool) -> None:
    theirs, ours, weight_map = _make_encoders(norm_first, activation, final_norm)
    assert max_gradient_difference(weight_map, theirs, ours, *_encode_both(theirs, ours)) < TOLERANCE


@pytest.mark.parametrize("final_norm", [True, False])
def test_round_trip(final_norm: bool) -> None:
    pairs = (_make_encoders(True, "relu", final_norm), _make_decoders(True, "relu", final_norm))
    for theirs, _, weight_map in pairs:
        before = theirs.state_dict()
        after = to_hf(weight_map, to_regard(weight_map, before))
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)
