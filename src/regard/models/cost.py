"""What a model costs before it exists: parameters, arithmetic, memory.

With N source and M target tokens, width d and h heads the lectures count O(N^2 + M^2 + N M) d for looking and
O((N + M) d^2) for projecting, O(N^2 h) memory where the weights are written out, and a cache that turns the
quadratic cost of a step into a linear one. Here each of them is a number.

>>> from regard.config.codec import preset
>>> tiny = cost(preset("tiny"), batch=1, source=20, target=20)
>>> tiny.parameters.total()
2605056
>>> tiny.cache["cross"], tiny.cache["self"]  # 4 layers x (keys + values) x 20 tokens x 128 x 4 bytes
(81920, 81920)

FLOPs are those of matrix products, a multiplication and an addition each; causal and windowed attention are
counted in full, because dense kernels compute them in full. Bytes are those of float32 unless told otherwise.
"""

from collections import Counter
from dataclasses import dataclass
from typing import assert_never

import torch

from regard.config import model as config
from regard.config import parts
from regard.models.build import build

Parts = Counter[str]  # a number for each part; `.total()` is their sum


@dataclass(frozen=True)
class Cost:
    """Numbers by part. FLOPs for the whole batch, bytes for the whole batch."""

    parameters: Parts
    forward: Parts  # FLOPs of one pass over all tokens
    training: Parts  # FLOPs of forward and backward
    decoding: Parts  # FLOPs of writing all target tokens one by one, with the cache
    decoding_uncached: Parts  # the same if every step starts anew
    activations: Parts  # bytes kept for the backward pass, where the fused kernel runs (see `_activations`)
    weights: Parts  # bytes of one layer's attention weights (N^2 h), where the explicit path writes them out
    cache: Parts  # bytes of keys and values once all target tokens are written


def cost(settings: config.AnyModel, *, batch: int, source: int = 0, target: int = 0, bytes_per_number: int = 4) -> Cost:
    """Costs for `batch` rows of `source` vectors read and `target` tokens written.

    For a decoder-only model `source` counts the vectors of the prefix; an encoder-only model has no target.
    """
    with torch.device("meta"):
        model = build(settings)
    parameters = Parts()
    for name, parameter in model.named_parameters():
        parameters[name.split(".")[0]] += parameter.numel()
    forward = _forward(settings, batch, source, target)
    trained = Parts({part: 3 * flops for part, flops in forward.items()})
    trained["input"] = 2 * forward["input"]  # nobody asks for the gradient of an image
    numbers = bytes_per_number
    return Cost(
        parameters=parameters,
        forward=forward,
        training=trained,
        decoding=_decoding(settings, batch, source, target),
        decoding_uncached=_decoding_uncached(settings, batch, source, target),
        activations=_scaled(_activations(settings, batch, source, target), numbers),
        weights=_scaled(_weights(settings, batch, source, target), numbers),
        cache=_scaled(_cache(settings, batch, source, target), numbers),
    )


def _forward(settings: config.AnyModel, batch: int, source: int, target: int) -> Parts:
    match settings:
        case config.EncoderDecoder():
            return (
                _input(settings.source, settings.width, batch * source)
                + _stack(settings.encoder, settings.width, batch, source, "source x source")
                + _stack(settings.decoder, settings.width, batch, target, "target x target")
                + _across(settings.decoder, settings.width, batch, target, source)
                + _head(settings.head, settings.width, settings.target_tokens.vocabulary, batch, target)
            )
        case config.DecoderOnly():
            return (
                (_input(settings.prefix, settings.width, batch * source) if settings.prefix else Parts())
                + _stack(settings.decoder, settings.width, batch, source + target, "target x target")
                + _head(settings.head, settings.width, settings.tokens.vocabulary, batch, target)
            )
        case config.EncoderOnly():
            words = settings.source.vocabulary if isinstance(settings.source, config.Tokens) else 0
            return (
                _input(settings.source, settings.width, batch * source)
                + _stack(settings.encoder, settings.width, batch, source, "source x source")
                + _head(settings.head, settings.width, words, batch, source)
            )
        case _:
            assert_never(settings)


def _decoding(settings: config.AnyModel, batch: int, source: int, target: int) -> Parts:
    """Step t looks at t tokens: 1 + 2 + ... + M looks instead of M times M."""
    if isinstance(settings, config.EncoderOnly):
        return Parts()
    before = source if isinstance(settings, config.DecoderOnly) else 0
    steps = _forward(settings, batch, source, target)  # projections, feed-forward, head: once a token, as in one pass
    looks = before * before + sum(range(before + 1, before + target + 1))
    asked = before + sum(range(before + 1, before + target + 1))
    stack = settings.decoder
    steps["target x target"] = stack.layers * _looks(
        stack.attention, settings.width, batch, looks, before + target, asked
    )
    if isinstance(stack, parts.CrossStack):
        steps["target x source"] = stack.layers * _looks(
            stack.cross, settings.width, batch, target * source, target, target * source
        )
    return steps


def _decoding_uncached(settings: config.AnyModel, batch: int, source: int, target: int) -> Parts:
    if isinstance(settings, config.EncoderOnly):
        return Parts()
    # A pass is a polynomial of second degree in what is written: three passes give the sum over all of them.
    none, one, two = (_forward(settings, batch, source, written) for written in range(3))
    first, second, third = target, target * (target + 1) // 2, (target + 1) * target * (target - 1) // 6
    return Parts(
        {
            part: none[part] * first
            + (one[part] - none[part]) * second
            + (two[part] - 2 * one[part] + none[part]) * third
            for part in two
        }
    )


def _input(settings: config.Input, width: int, vectors: int) -> Parts:
    match settings:
        case config.Tokens():
            return Parts()  # a table is looked up, not multiplied
        case config.Patches(patch=patch, channels=channels):
            return Parts({"input": 2 * vectors * channels * patch * patch * width})
        case config.Mel(bins=bins, frames=frames):
            return Parts({"input": 2 * vectors * bins * frames * width})
        case _:
            assert_never(settings)


def _stack(settings: parts.Stack, width: int, batch: int, tokens: int, looks: str) -> Parts:
    """Everything in a stack but its cross-attention."""
    matrices = 3 if settings.feedforward.kind == "gated" else 2
    attention = settings.attention
    layer = Parts(
        {
            "projections": _projections(attention, width, batch * tokens, batch * tokens),
            looks: _looks(attention, width, batch, tokens * tokens, tokens, tokens),
            "feedforward": 2 * batch * tokens * matrices * width * settings.feedforward.hidden,
        }
    )
    return _scaled(layer, settings.layers)


def _across(settings: parts.CrossStack, width: int, batch: int, target: int, source: int) -> Parts:
    layer = Parts(
        {
            "projections": _projections(settings.cross, width, batch * target, batch * source),
            "target x source": _looks(settings.cross, width, batch, target * source, target, source),
        }
    )
    return _scaled(layer, settings.layers)


def _projections(attention: parts.Attention, width: int, asking: int, asked: int) -> int:
    """Queries and outputs for those who ask, keys and values for those who are asked; general's W on queries."""
    key_dim, value_dim = attention.dims(width)
    one_query = attention.heads * (key_dim + value_dim) * width
    if attention.score.kind == "general":
        one_query += attention.heads * key_dim * key_dim
    return 2 * (asking * one_query + asked * attention.groups * (key_dim + value_dim) * width)


def _looks(attention: parts.Attention, width: int, batch: int, looks: int, asking: int, asked: int) -> int:
    """Scores and weighted sums. `looks` pairs a row, of `asking` queries and `asked` keys over all calls."""
    key_dim, value_dim = attention.dims(width)
    score = attention.score
    if isinstance(score, parts.Concat | parts.Additive):
        scores = looks * score.hidden + (asking + asked) * key_dim * score.hidden
    else:
        scores = looks * key_dim
    return 2 * batch * attention.heads * (scores + looks * value_dim)


def _head(
    head: config.LMHead | config.MLMHead | config.Classes | config.Tags | config.NoHead,
    width: int,
    words: int,
    batch: int,
    tokens: int,
) -> Parts:
    match head:
        case config.LMHead():
            flops = 2 * batch * tokens * width * words
        case config.MLMHead():
            flops = 2 * batch * tokens * width * (width + words)
        case config.Classes(labels=labels):
            flops = 2 * batch * width * (len(labels) + (width if head.hidden else 0))
        case config.Tags(labels=labels):
            flops = 2 * batch * tokens * width * len(labels)
        case config.NoHead():
            flops = 0
        case _:
            assert_never(head)
    return Parts({"head": flops})


def _activations(settings: config.AnyModel, batch: int, source: int, target: int) -> Parts:
    """Numbers kept for the backward pass where the fused kernel runs, with one noise tensor for every dropout.

    Not counted: what torch keeps of attention weights where it cannot run fused on a CPU (dropout on them, a learned
    bias, concat and additive scores; `weights` tells how many numbers they are), and the inside of norms on heads.
    """
    width = settings.width
    kept = Parts()
    if isinstance(settings, config.EncoderDecoder | config.EncoderOnly):
        kept["encoder"] = _stack_kept(settings.encoder, width, batch * source)
    if isinstance(settings, config.EncoderDecoder):
        stack = settings.decoder
        kept["decoder"] = _stack_kept(stack, width, batch * target) + stack.layers * (
            _attention_kept(stack.cross, width, batch * target, batch * source)
            + _residual_kept(stack, width, batch * target)
        )
        kept["logits"] = batch * target * settings.target_tokens.vocabulary
    elif isinstance(settings, config.DecoderOnly):
        kept["decoder"] = _stack_kept(settings.decoder, width, batch * (source + target))
        if isinstance(settings.head, config.LMHead):
            kept["logits"] = batch * target * settings.tokens.vocabulary
    elif isinstance(settings.head, config.MLMHead) and isinstance(settings.source, config.Tokens):
        kept["logits"] = batch * source * (settings.source.vocabulary + 4 * width)
    return kept


def _stack_kept(settings: parts.Stack, width: int, vectors: int) -> int:
    """A stack's layers (but for cross-attention), what enters and what leaves."""
    hidden = vectors * settings.feedforward.hidden
    if settings.feedforward.kind == "gated":
        middle = 4 * hidden  # gate, bent gate, up, their product
    else:
        middle = hidden if settings.feedforward.activation == "relu" else 2 * hidden  # relu needs only its result
    if settings.dropout.feedforward:
        middle += (2 if settings.feedforward.activation == "relu" else 1) * hidden  # noise, and what it changed
    layer = (
        _attention_kept(settings.attention, width, vectors, vectors)
        + middle
        + 2 * _residual_kept(settings, width, vectors)
    )
    ends = vectors * width * (1 + settings.input_norm + settings.final_norm + bool(settings.dropout.embedding))
    return settings.layers * layer + ends


def _attention_kept(attention: parts.Attention, width: int, asking: int, asked: int) -> int:
    """Queries, keys, values, the heads' outputs, and the softmax's denominators."""
    key_dim, value_dim = attention.dims(width)
    return asking * attention.heads * (key_dim + value_dim + 1) + asked * attention.groups * (key_dim + value_dim)


def _residual_kept(settings: parts.Stack, width: int, vectors: int) -> int:
    """What the norm and the projections read, and the dropout's noise."""
    return vectors * width * (3 if settings.dropout.sublayer else 2)


def _weights(settings: config.AnyModel, batch: int, source: int, target: int) -> Parts:
    """Attention weights of one layer: one number a head for every look."""
    match settings:
        case config.EncoderDecoder():
            return Parts(
                {
                    "source x source": batch * settings.encoder.attention.heads * source * source,
                    "target x target": batch * settings.decoder.attention.heads * target * target,
                    "target x source": batch * settings.decoder.cross.heads * target * source,
                }
            )
        case config.DecoderOnly():
            return Parts({"target x target": batch * settings.decoder.attention.heads * (source + target) ** 2})
        case config.EncoderOnly():
            return Parts({"source x source": batch * settings.encoder.attention.heads * source * source})
        case _:
            assert_never(settings)


def _cache(settings: config.AnyModel, batch: int, source: int, target: int) -> Parts:
    if isinstance(settings, config.EncoderOnly):
        return Parts()
    stack = settings.decoder
    before = source if isinstance(settings, config.DecoderOnly) else 0
    kept = Parts({"self": stack.layers * batch * (before + target) * _pair(stack.attention, settings.width)})
    if isinstance(stack, parts.CrossStack):
        kept["cross"] = stack.layers * batch * source * _pair(stack.cross, settings.width)
    return kept


def _pair(attention: parts.Attention, width: int) -> int:
    """Numbers in one token's key and value, all groups together."""
    return attention.groups * sum(attention.dims(width))


def _scaled(counts: Parts, factor: int) -> Parts:
    return Parts({part: factor * count for part, count in counts.items()})
