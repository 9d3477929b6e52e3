"""The cost of a model, computed from its configuration: parameters, FLOPs, memory.

With N source and M target tokens, width d and h heads, the complexity is O(N^2 + M^2 + N M) d for attention and
O((N + M) d^2) for projections, O(N^2 h) memory where attention weights are materialized, and a KV cache that makes the
quadratic cost of a step linear. This module gives the exact numbers. A recurrent layer costs O(N d^2), without a
quadratic term, but its N steps run one after another: `sequential` counts such steps.

>>> from regard.config.codec import preset
>>> tiny = cost(preset("tiny"), batch_size=1, source=20, target=20)
>>> tiny.parameters.total()
2605056
>>> tiny.kv_cache["cross"], tiny.kv_cache["self"]  # 4 layers x (keys + values) x 20 tokens x 128 x 4 bytes
(81920, 81920)

Only matrix products count as FLOPs, a multiplication and an addition as two. Causal and windowed attention count in
full, because dense kernels compute all scores. Bytes assume float32 by default.
"""

from collections import Counter
from dataclasses import dataclass
from typing import assert_never

import torch

from regard.config import parts
from regard.config.inputs import InputConfig, MelConfig, PatchesConfig, TokensConfig
from regard.config.model import (
    AnyHeadConfig,
    AnyModelConfig,
    BagHeadConfig,
    ClassificationHeadConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    LMHeadConfig,
    MLMHeadConfig,
    NoHeadConfig,
    PatchHeadConfig,
    TaggingHeadConfig,
)
from regard.models.build import build

Parts = Counter[str]  # one number per part; `.total()` is their sum


@dataclass(frozen=True)
class Cost:
    """Costs by part. FLOPs and bytes are totals over the batch."""

    parameters: Parts
    forward: Parts  # FLOPs of one forward pass over all tokens
    training: Parts  # FLOPs of forward and backward
    decoding: Parts  # FLOPs of generating all target tokens one by one, with the KV cache
    decoding_uncached: Parts  # the same without a cache
    activations: Parts  # bytes kept for the backward pass with fused attention (see `_activations`)
    attention_weights: Parts  # bytes of one layer's attention weights (N^2 h) in eager attention
    kv_cache: Parts  # bytes of keys and values after all target tokens; of the states of a recurrent decoder
    sequential: Parts  # sequential layers of a pass; a recurrent layer counts once per token


def cost(
    settings: AnyModelConfig, *, batch_size: int, source: int = 0, target: int = 0, bytes_per_element: int = 4
) -> Cost:
    """Compute the cost of one batch.

    Args:
        settings: The model's configuration.
        batch_size: Rows of the batch.
        source: Source length; for a decoder-only model, the length of the prefix.
        target: Target length; 0 for an encoder-only model.
        bytes_per_element: 4 for float32, 2 for bfloat16.
    """
    with torch.device("meta"):
        model = build(settings)
    parameters = Parts()
    for name, parameter in model.named_parameters():
        parameters[name.split(".")[0]] += parameter.numel()
    element_size = bytes_per_element
    return Cost(
        parameters=parameters,
        forward=_forward(settings, batch_size, source, target),
        training=count_training_flops(settings, batch_size, source, target),
        decoding=_decoding(settings, batch_size, source, target),
        decoding_uncached=_decoding_uncached(settings, batch_size, source, target),
        activations=_scale(_activations(settings, batch_size, source, target), element_size),
        attention_weights=_scale(_attention_weights(settings, batch_size, source, target), element_size),
        kv_cache=_scale(_kv_cache(settings, batch_size, source, target), element_size),
        sequential=_sequential(settings, source, target),
    )


def count_training_flops(settings: AnyModelConfig, batch_size: int, source: int, target: int) -> Parts:
    """Count the FLOPs of forward and backward, as `cost` does."""
    forward = _forward(settings, batch_size, source, target)
    training = Parts({part: 3 * flops for part, flops in forward.items()})
    training["input"] = 2 * forward["input"]  # no gradient with respect to an image
    return training


def _forward(settings: AnyModelConfig, batch_size: int, source: int, target: int) -> Parts:
    match settings:
        case EncoderDecoderConfig():
            return (
                _input(settings.source, settings.d_model, batch_size * source)
                + _stack(settings.encoder, settings.d_model, batch_size, source, "source x source")
                + _stack(settings.decoder, settings.d_model, batch_size, target, "target x target")
                + _cross_attention(settings.decoder, settings.d_model, batch_size, target, source)
                + _head(settings.head, settings.d_model, settings.target_tokens.vocabulary, batch_size, target)
            )
        case DecoderOnlyConfig():
            return (
                (_input(settings.prefix, settings.d_model, batch_size * source) if settings.prefix else Parts())
                + _stack(settings.decoder, settings.d_model, batch_size, source + target, "target x target")
                + _head(settings.head, settings.d_model, settings.tokens.vocabulary, batch_size, target)
            )
        case EncoderOnlyConfig():
            vocabulary = settings.source.vocabulary if isinstance(settings.source, TokensConfig) else 0
            return (
                _input(settings.source, settings.d_model, batch_size * source)
                + _stack(settings.encoder, settings.d_model, batch_size, source, "source x source")
                + _head(settings.head, settings.d_model, vocabulary, batch_size, source)
                + _pixel_head(settings, batch_size, source)
            )
        case _:
            assert_never(settings)


def _pixel_head(settings: EncoderOnlyConfig, batch_size: int, source: int) -> Parts:
    """FLOPs of the layers and the projection that predict pixels if all patches are encoded; otherwise empty."""
    head, patches = settings.head, settings.source
    if not isinstance(head, PatchHeadConfig) or not isinstance(patches, PatchesConfig):
        return Parts()
    stack = settings.encoder.model_copy(update={"layers": head.layers})
    pixels = patches.channels * patches.patch**2
    vectors = batch_size * (source - patches.class_token)
    return _stack(stack, settings.d_model, batch_size, source, "source x source") + Parts(
        {"head": 2 * vectors * settings.d_model * pixels}
    )


def _decoding(settings: AnyModelConfig, batch_size: int, source: int, target: int) -> Parts:
    """Step t attends to t tokens: 1 + 2 + ... + M query-key pairs instead of M times M."""
    if isinstance(settings, EncoderOnlyConfig):
        return Parts()
    prefix = source if isinstance(settings, DecoderOnlyConfig) else 0
    steps = _forward(
        settings, batch_size, source, target
    )  # projections, feed-forward, head: once per token, as in one pass
    pairs = prefix * prefix + sum(range(prefix + 1, prefix + target + 1))
    keys = prefix + sum(range(prefix + 1, prefix + target + 1))
    stack = settings.decoder
    if isinstance(stack, parts.StackConfig):
        steps["target x target"] = stack.layers * _attention_flops(
            stack.attention, settings.d_model, batch_size, pairs, prefix + target, keys
        )
    if (cross := _cross_attention_settings(stack)) is not None:
        steps["target x source"] = stack.layers * _attention_flops(
            cross, settings.d_model, batch_size, target * source, target, target * source
        )
    return steps


def _decoding_uncached(settings: AnyModelConfig, batch_size: int, source: int, target: int) -> Parts:
    if isinstance(settings, EncoderOnlyConfig):
        return Parts()
    # The cost of a pass is a quadratic polynomial in the target length: three values determine the sum over all steps.
    at_0, at_1, at_2 = (_forward(settings, batch_size, source, length) for length in range(3))
    # Newton's forward differences, with the sums of C(m, 0), C(m, 1) and C(m, 2) over m = 1, ..., target.
    sum_0, sum_1, sum_2 = target, target * (target + 1) // 2, (target + 1) * target * (target - 1) // 6
    return Parts(
        {
            part: at_0[part] * sum_0
            + (at_1[part] - at_0[part]) * sum_1
            + (at_2[part] - 2 * at_1[part] + at_0[part]) * sum_2
            for part in at_2
        }
    )


def _input(settings: InputConfig, width: int, vectors: int) -> Parts:
    match settings:
        case TokensConfig():
            return Parts()  # an embedding lookup has no products
        case PatchesConfig(patch=patch, channels=channels):
            if settings.stem == "convolution":
                first, *later = _stem_products(channels, width, patch)
                return Parts({"input": 2 * vectors * first, "stem": 2 * vectors * (sum(later) + width * width)})
            return Parts({"input": 2 * vectors * channels * patch * patch * width})
        case MelConfig(bins=bins, frames=frames):
            if settings.stem == "convolution":
                return Parts({"input": 2 * vectors * frames * 3 * bins * width, "stem": 2 * vectors * 3 * width**2})
            return Parts({"input": 2 * vectors * bins * frames * width})
        case _:
            assert_never(settings)


def _stem_products(channels: int, width: int, patch: int) -> list[int]:
    """Products per patch in each convolution of a stem: 9 per pair of channels and pixel of the output."""
    products, steps = [], patch.bit_length() - 1
    for step in range(steps):
        outputs = max(1, width >> (steps - 1 - step))
        products.append((patch >> (step + 1)) ** 2 * 9 * channels * outputs)
        channels = outputs
    return products


def _stack(
    settings: parts.StackConfig | parts.RecurrentConfig, width: int, batch_size: int, tokens: int, label: str
) -> Parts:
    """FLOPs of a stack without its cross-attention."""
    if isinstance(settings, parts.RecurrentConfig):
        cells = batch_size * tokens * _cell_size(settings, width) + batch_size * tokens * _combine_size(settings, width)
        return Parts({"cells": 2 * settings.layers * cells})
    matrices = 3 if settings.feedforward.kind == "gated" else 2
    attention = settings.attention
    layer = Parts(
        {
            "projections": _projections(attention, width, batch_size * tokens, batch_size * tokens),
            label: _attention_flops(attention, width, batch_size, tokens * tokens, tokens, tokens),
            "feedforward": 2 * batch_size * tokens * matrices * width * settings.feedforward.d_ff,
        }
    )
    return _scale(layer, settings.layers)


def _cross_attention(
    settings: parts.CrossStackConfig | parts.CrossRecurrentConfig, width: int, batch_size: int, target: int, source: int
) -> Parts:
    attention = _cross_attention_settings(settings)
    if attention is None:
        return Parts()
    queries, keys = batch_size * target, batch_size * source
    is_projected = isinstance(settings, parts.CrossStackConfig)  # states attend to states as they are
    projections = _projections(attention, width, queries, keys) if is_projected else 0
    if not is_projected and attention.score.kind == "general":
        projections = 2 * queries * width * width
    flops = _attention_flops(attention, width, batch_size, target * source, target, source)
    return _scale(Parts({"projections": projections, "target x source": flops}), settings.layers)


def _cross_attention_settings(stack: parts.StackConfig | parts.RecurrentConfig) -> parts.AttentionConfig | None:
    """Return the attention of a decoder to a memory; in a recurrent decoder it has one head as wide as a state."""
    match stack:
        case parts.CrossStackConfig(cross=cross):
            return cross
        case parts.CrossRecurrentConfig(cross=parts.LuongConfig(score=score) | parts.BahdanauConfig(score=score)):
            return parts.AttentionConfig(heads=1, score=score)
        case _:
            return None


def _cell_size(settings: parts.RecurrentConfig, width: int) -> int:
    """Multiplications of one layer's cell per token."""
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[settings.cell]
    reads_memory = isinstance(settings, parts.CrossRecurrentConfig) and settings.cross.kind != "luong"
    state = width // 2 if settings.bidirectional else width
    inputs = 2 * width if reads_memory else width
    return (1 + settings.bidirectional) * gates * state * (inputs + state)


def _combine_size(settings: parts.RecurrentConfig, width: int) -> int:
    """Multiplications per token of the layer that combines context and state."""
    return 2 * width * width if isinstance(settings, parts.CrossRecurrentConfig) else 0


def _projections(attention: parts.AttentionConfig, width: int, queries: int, keys: int) -> int:
    """FLOPs of the query and output, key and value projections, and of W in a general score."""
    key_dim, value_dim = attention.dims(width)
    per_query = attention.heads * (key_dim + value_dim) * width
    if attention.score.kind == "general":
        per_query += attention.heads * key_dim * key_dim
    return 2 * (queries * per_query + keys * attention.groups * (key_dim + value_dim) * width)


def _attention_flops(
    attention: parts.AttentionConfig, width: int, batch_size: int, pairs: int, queries: int, keys: int
) -> int:
    """FLOPs of scores and weighted sums, given query-key pairs, queries and keys per row over all calls."""
    key_dim, value_dim = attention.dims(width)
    score = attention.score
    if isinstance(score, parts.ConcatConfig | parts.AdditiveConfig):
        scores = pairs * score.hidden + (queries + keys) * key_dim * score.hidden
    else:
        scores = pairs * key_dim
    return 2 * batch_size * attention.heads * (scores + pairs * value_dim)


def _sequential(settings: AnyModelConfig, source: int, target: int) -> Parts:
    """Count the sequential steps of a pass: layers, and tokens in recurrent layers."""
    lengths = {"encoder": source, "decoder": source + target if settings.family == "decoder_only" else target}
    stacks = {name: getattr(settings, name) for name in lengths if hasattr(settings, name)}
    return Parts(
        {
            name: stack.layers * (lengths[name] if isinstance(stack, parts.RecurrentConfig) else 1)
            for name, stack in stacks.items()
        }
    )


def _head(
    head: AnyHeadConfig,
    width: int,
    vocabulary: int,
    batch_size: int,
    tokens: int,
) -> Parts:
    match head:
        case LMHeadConfig() | BagHeadConfig():
            flops = 2 * batch_size * tokens * width * vocabulary
        case MLMHeadConfig():
            flops = 2 * batch_size * tokens * width * (width + vocabulary)
        case ClassificationHeadConfig(labels=labels):
            flops = 2 * batch_size * width * (len(labels) + (width if head.hidden else 0))
        case TaggingHeadConfig(labels=labels):
            flops = 2 * batch_size * tokens * width * len(labels)
        case PatchHeadConfig() | NoHeadConfig():  # the caller counts the layers of a pixel head
            flops = 0
        case _:
            assert_never(head)
    return Parts({"head": flops})


def _activations(settings: AnyModelConfig, batch_size: int, source: int, target: int) -> Parts:
    """Count the elements kept for the backward pass with fused attention, and one mask for every dropout.

    Not counted: attention weights where torch has no fused kernel on a CPU (attention dropout, a learned bias, concat
    and additive scores; `Cost.attention_weights` gives their size), and activations inside query and key norms.
    """
    width = settings.d_model
    activations = Parts()
    if isinstance(settings, EncoderDecoderConfig | EncoderOnlyConfig):
        activations["encoder"] = _stack_activations(settings.encoder, width, batch_size * source)
    if isinstance(settings, EncoderDecoderConfig):
        stack = settings.decoder
        activations["decoder"] = _stack_activations(stack, width, batch_size * target)
        if isinstance(stack, parts.CrossStackConfig):
            activations["decoder"] += stack.layers * (
                _attention_activations(stack.cross, width, batch_size * target, batch_size * source)
                + _residual_activations(stack, width, batch_size * target)
            )
        activations["logits"] = batch_size * target * settings.target_tokens.vocabulary
    elif isinstance(settings, DecoderOnlyConfig):
        activations["decoder"] = _stack_activations(settings.decoder, width, batch_size * (source + target))
        if isinstance(settings.head, LMHeadConfig):
            activations["logits"] = batch_size * target * settings.tokens.vocabulary
    elif isinstance(settings.head, MLMHeadConfig) and isinstance(settings.source, TokensConfig):
        activations["logits"] = batch_size * source * (settings.source.vocabulary + 4 * width)
    elif isinstance(settings.head, BagHeadConfig) and isinstance(settings.source, TokensConfig):
        activations["logits"] = batch_size * source * (settings.source.vocabulary + width)
    return activations


def _stack_activations(settings: parts.StackConfig | parts.RecurrentConfig, width: int, vectors: int) -> int:
    """Elements of a stack's layers (without cross-attention), its input and its output."""
    if isinstance(settings, parts.RecurrentConfig):
        gates = {"rnn": 1, "gru": 5, "lstm": 6}[settings.cell]  # that torch keeps of every step
        joined = 4 if isinstance(settings, parts.CrossRecurrentConfig) else 0  # [x; c], [c; s]
        return settings.layers * vectors * width * (gates + 2 + joined + bool(settings.dropout.sublayer))
    hidden = vectors * settings.feedforward.d_ff
    if settings.feedforward.kind == "gated":
        feedforward = 4 * hidden  # gate, activated gate, up, their product
    else:
        feedforward = hidden if settings.feedforward.activation == "relu" else 2 * hidden  # relu keeps only its output
    if settings.dropout.feedforward:
        feedforward += (2 if settings.feedforward.activation == "relu" else 1) * hidden  # mask, product
    layer = (
        _attention_activations(settings.attention, width, vectors, vectors)
        + feedforward
        + 2 * _residual_activations(settings, width, vectors)
    )
    ends = vectors * width * (1 + settings.input_norm + settings.final_norm + bool(settings.dropout.embedding))
    return settings.layers * layer + ends


def _attention_activations(attention: parts.AttentionConfig, width: int, queries: int, keys: int) -> int:
    """Elements of queries, keys, values, heads, and softmax denominators."""
    key_dim, value_dim = attention.dims(width)
    return queries * attention.heads * (key_dim + value_dim + 1) + keys * attention.groups * (key_dim + value_dim)


def _residual_activations(settings: parts.StackConfig, width: int, vectors: int) -> int:
    """Elements of the inputs of norm and projections, and of the dropout mask."""
    return vectors * width * (3 if settings.dropout.sublayer else 2)


def _attention_weights(settings: AnyModelConfig, batch_size: int, source: int, target: int) -> Parts:
    """Elements of one layer's attention weights: one per head and query-key pair."""
    weights = Parts()
    if isinstance(settings, EncoderDecoderConfig | EncoderOnlyConfig) and isinstance(
        settings.encoder, parts.StackConfig
    ):
        weights["source x source"] = batch_size * settings.encoder.attention.heads * source * source
    if isinstance(settings, EncoderDecoderConfig | DecoderOnlyConfig):
        length = target + (source if isinstance(settings, DecoderOnlyConfig) else 0)
        if isinstance(settings.decoder, parts.StackConfig):
            weights["target x target"] = batch_size * settings.decoder.attention.heads * length**2
        if (cross := _cross_attention_settings(settings.decoder)) is not None:
            weights["target x source"] = batch_size * cross.heads * target * source
    return weights


def _kv_cache(settings: AnyModelConfig, batch_size: int, source: int, target: int) -> Parts:
    if isinstance(settings, EncoderOnlyConfig):
        return Parts()
    stack = settings.decoder
    prefix = source if isinstance(settings, DecoderOnlyConfig) else 0
    tokens = stack.layers * batch_size * (prefix + target)
    if isinstance(stack, parts.RecurrentConfig):
        elements = Parts({"states": tokens * settings.d_model * (2 if stack.cell == "lstm" else 1)})
    else:
        elements = Parts({"self": tokens * _key_value_size(stack.attention, settings.d_model)})
    if (cross := _cross_attention_settings(stack)) is not None:
        elements["cross"] = stack.layers * batch_size * source * _key_value_size(cross, settings.d_model)
    elif isinstance(stack, parts.CrossRecurrentConfig):
        elements["cross"] = stack.layers * batch_size * source * settings.d_model
    return elements


def _key_value_size(attention: parts.AttentionConfig, width: int) -> int:
    """Elements of one token's key and value over all groups."""
    return attention.groups * sum(attention.dims(width))


def _scale(counts: Parts, factor: int) -> Parts:
    return Parts({part: factor * count for part, count in counts.items()})
