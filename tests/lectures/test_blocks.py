"""Deck 000's encoder and decoder blocks, written as functions of plain tensors, are Regard's post-norm layers.

    encoder   hat x   = LN(MSA(x, x, x) + x)
              x'      = LN(FFN(hat x) + hat x)
    decoder   hat y   = LN(MaskedMSA(y, y, y) + y)
              tilde y = LN(MCA(hat y, x^N, x^N) + hat y)
              y'      = LN(FFN(tilde y) + tilde y)

The slide gives the cross-attention the index l-1 for hat y. It means the current layer's: "query matrix from
the previous Multi-Head Self-Attention".
"""

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.config.codec import preset
from regard.config.model import EncoderDecoderConfig
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.masks import causal, no_mask
from regard.nn.stack import Stack

TOLERANCE = 2e-5
WIDTH, HEADS, HIDDEN, EPS = 24, 3, 40, 1e-5

Weights = Mapping[str, Tensor]


def layer_norm(x: Tensor, weights: Weights, prefix: str) -> Tensor:
    """gamma (x - mu) / sigma + beta, over the features of each token."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return weights[f"{prefix}.norm.weight"] * (x - mean) / (variance + EPS).sqrt() + weights[f"{prefix}.norm.bias"]


def multi_head(query: Tensor, key: Tensor, value: Tensor, weights: Weights, name: str, masked: bool) -> Tensor:
    """[SA(Q_1, K_1, V_1), ..., SA(Q_h, K_h, V_h)] W_O, one head after the other, each with its own matrices."""
    size = WIDTH // HEADS
    heads = []
    for head in range(HEADS):
        rows = slice(head * size, (head + 1) * size)  # W_i^Q, W_i^K and W_i^V are these rows of the whole

        def project(x: Tensor, kind: str, rows: slice = rows) -> Tensor:
            bias = weights.get(f"{name}.{kind}.bias")
            return linear(x, weights[f"{name}.{kind}.weight"][rows], None if bias is None else bias[rows])

        q, k, v = project(query, "query"), project(key, "key"), project(value, "value")
        scores = q @ k.transpose(-2, -1) / math.sqrt(size)
        if masked:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
            scores = scores.masked_fill(future, float("-inf"))
        heads.append(scores.softmax(dim=-1) @ v)
    return linear(torch.cat(heads, dim=-1), weights[f"{name}.output.weight"], weights.get(f"{name}.output.bias"))


def feed_forward(x: Tensor, weights: Weights) -> Tensor:
    hidden = linear(x, weights["feedforward.up.weight"], weights["feedforward.up.bias"]).clamp(min=0)
    return linear(hidden, weights["feedforward.down.weight"], weights["feedforward.down.bias"])


def encoder_block(x: Tensor, weights: Weights) -> Tensor:
    hat_x = layer_norm(multi_head(x, x, x, weights, "attention", masked=False) + x, weights, "attention_residual")
    return layer_norm(feed_forward(hat_x, weights) + hat_x, weights, "feedforward_residual")


def masked_self_attention(y: Tensor, weights: Weights) -> Tensor:
    """hat y."""
    return layer_norm(multi_head(y, y, y, weights, "attention", masked=True) + y, weights, "attention_residual")


def cross_attention_and_feed_forward(hat_y: Tensor, memory: Tensor, weights: Weights) -> Tensor:
    """tilde y, and then y'."""
    crossed = multi_head(hat_y, memory, memory, weights, "cross", masked=False)
    tilde_y = layer_norm(crossed + hat_y, weights, "cross_residual")
    return layer_norm(feed_forward(tilde_y, weights) + tilde_y, weights, "feedforward_residual")


def decoder_block(y: Tensor, memory: Tensor, weights: Weights) -> Tensor:
    return cross_attention_and_feed_forward(masked_self_attention(y, weights), memory, weights)


def post_norm_model(layers: int, bias: bool) -> EncoderDecoder:
    """The preset `base`, made small; without positions, which the blocks do not have."""
    changes: dict[str, object] = {"d_model": WIDTH, "source.vocabulary": 10}
    biases = dict.fromkeys(("query", "key", "value", "output"), bias)
    for stack in ("encoder", "decoder"):
        changes[f"{stack}.layers"] = layers
        changes[f"{stack}.attention"] = {"heads": HEADS, "bias": biases}
        changes[f"{stack}.feedforward.d_ff"] = HIDDEN
        changes[f"{stack}.position.kind"] = "none"
    changes["decoder.cross"] = {"heads": HEADS, "bias": biases}
    settings = preset("base", changes)
    assert isinstance(settings, EncoderDecoderConfig)
    model = build(settings, seed=2).eval()
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # zero biases and equal norms would hide swapped tensors
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


def layer_weights(stack: Stack, layer: int) -> dict[str, Tensor]:
    """Copy a layer's weights as tensors with gradients."""
    named = stack.layers[layer].named_parameters()
    return {name: parameter.detach().clone().requires_grad_() for name, parameter in named}


def draw(tokens: int, seed: int) -> tuple[Tensor, Tensor]:
    """The same vectors twice, (B, T, D): one for our layer, one for the equations."""
    x = torch.randn(2, tokens, WIDTH, generator=torch.Generator().manual_seed(seed))
    return x.clone().requires_grad_(), x.clone().requires_grad_()


def assert_equal_gradients(output: Tensor, expected: Tensor, pairs: Mapping[str, tuple[Tensor, Tensor]]) -> None:
    """The same mixture of outputs, taken back to the inputs and every weight."""
    mixture = torch.randn(output.shape, generator=torch.Generator().manual_seed(9)) / 10
    (output * mixture).sum().backward()
    (expected * mixture).sum().backward()
    for name, (ours, theirs) in pairs.items():
        assert ours.grad is not None, name
        assert theirs.grad is not None, name
        assert (ours.grad - theirs.grad).abs().max() <= TOLERANCE, name
        if not name.endswith("key.bias"):  # the softmax does not see it: its gradient is zero
            assert theirs.grad.abs().max() > 10 * TOLERANCE, name


def weight_pairs(layer: nn.Module, weights: Weights) -> dict[str, tuple[Tensor, Tensor]]:
    pairs = {name: (parameter, weights[name]) for name, parameter in layer.named_parameters()}
    assert pairs.keys() == weights.keys()
    return {**pairs}


# The slide's projections are bare matrices; the presets of the paper add a bias to each. Both must hold.
with_and_without_bias = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])


@with_and_without_bias
def test_encoder_block(bias: bool) -> None:
    encoder = post_norm_model(layers=1, bias=bias).encoder
    weights = layer_weights(encoder, 0)
    our_x, their_x = draw(tokens=6, seed=0)
    output, expected = encoder(our_x, no_mask()), encoder_block(their_x, weights)
    torch.testing.assert_close(output, expected, rtol=0, atol=TOLERANCE)
    pairs = weight_pairs(encoder.layers[0], weights)
    assert_equal_gradients(output, expected, {**pairs, "x": (our_x, their_x)})


@with_and_without_bias
def test_decoder_block(bias: bool) -> None:
    decoder = post_norm_model(layers=1, bias=bias).decoder
    weights = layer_weights(decoder, 0)
    our_y, their_y = draw(tokens=5, seed=0)
    our_memory, their_memory = draw(tokens=7, seed=1)
    output = decoder(our_y, causal(), memory=our_memory, memory_mask=no_mask())
    expected = decoder_block(their_y, their_memory, weights)
    torch.testing.assert_close(output, expected, rtol=0, atol=TOLERANCE)
    pairs = weight_pairs(decoder.layers[0], weights)
    assert_equal_gradients(output, expected, {**pairs, "y": (our_y, their_y), "memory": (our_memory, their_memory)})


def test_blocks_are_stacked_over_one_memory() -> None:
    # "x^(N) is the output of the encoder": every decoder block attends to the last encoder block's output.
    model = post_norm_model(layers=2, bias=True)
    source, _ = draw(tokens=7, seed=1)
    target, _ = draw(tokens=5, seed=0)
    with torch.no_grad():
        memory = model.encoder(source, no_mask())
        output = model.decoder(target, causal(), memory=memory, memory_mask=no_mask())
        x, y = source, target
        for layer in range(2):
            x = encoder_block(x, layer_weights(model.encoder, layer))
        for layer in range(2):
            y = decoder_block(y, x, layer_weights(model.decoder, layer))
    torch.testing.assert_close(memory, x, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(output, y, rtol=0, atol=TOLERANCE)


def test_printed_index_of_cross_attention_is_an_error() -> None:
    # Taken literally, the second block would use as query the first block's hat y and never use its own self-attention.
    decoder = post_norm_model(layers=2, bias=True).decoder
    target, _ = draw(tokens=5, seed=0)
    memory, _ = draw(tokens=7, seed=1)
    first, second = layer_weights(decoder, 0), layer_weights(decoder, 1)
    with torch.no_grad():
        output = decoder(target, causal(), memory=memory, memory_mask=no_mask())
        literal = cross_attention_and_feed_forward(masked_self_attention(target, first), memory, second)
        intended = decoder_block(decoder_block(target, memory, first), memory, second)
    torch.testing.assert_close(output, intended, rtol=0, atol=TOLERANCE)
    assert (output - literal).abs().max() > 0.1
