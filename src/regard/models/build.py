"""A configuration becomes a network: here, and nowhere else, kinds are turned into modules.

>>> from regard.config.codec import preset
>>> model = build(preset("tiny"))
>>> sum(parameter.numel() for parameter in model.parameters())
2605056
"""

import math
from typing import Any, TypeVar, assert_never, overload

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.config import model as config
from regard.config import parts
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import ClassHead, MaskedWordHead, TagHead, VectorHead, WordHead
from regard.models.initial import initialise
from regard.models.inputs import MelInput, PatchInput, TokenInput
from regard.nn.attention import Attention, CrossAttention, SelfAttention
from regard.nn.feedforward import FeedForward
from regard.nn.layer import Layer, Residual
from regard.nn.masks import Mask, causal, everything, window
from regard.nn.norm import make_norm
from regard.nn.positions import Alibi, Learned, Position, Relative, Rotary, Sinusoidal
from regard.nn.scores import Additive, Concat, General, Score
from regard.nn.stack import Stack

AnyModel = EncoderDecoder | DecoderOnly | EncoderOnly
SomeAttention = TypeVar("SomeAttention", bound=Attention)


@overload
def build(settings: config.EncoderDecoder, seed: int | None = None) -> EncoderDecoder: ...
@overload
def build(settings: config.DecoderOnly, seed: int | None = None) -> DecoderOnly: ...
@overload
def build(settings: config.EncoderOnly, seed: int | None = None) -> EncoderOnly: ...
@overload
def build(settings: config.AnyModel, seed: int | None = None) -> AnyModel: ...
def build(settings: config.AnyModel, seed: int | None = None) -> AnyModel:
    """A new model with initial weights; the same seed draws the same weights.

    On another device: `with torch.device("cuda"): build(...)`. On "meta" nothing is drawn, and
    `initialise(model, settings)` fills the model once it has been materialised.
    """
    if torch.get_default_device().type == "meta":
        with _Undrawn():
            return _assemble(settings)
    model = _assemble(settings)
    initialise(model, settings, seed)
    return model


class _Undrawn(TorchFunctionMode):
    """Functions of `nn.init` do nothing: what has no numbers needs none, and torch would load its compiler for them."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Torch asks here before it does anything."""
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def _assemble(settings: config.AnyModel) -> AnyModel:
    width = settings.width
    match settings:
        case config.EncoderDecoder():
            source = _input(settings.source, width)
            if isinstance(settings.target, config.Tokens):
                target = _tokens(settings.target, width)
            else:
                assert isinstance(source, TokenInput)  # noqa: S101 - the configuration refuses anything else
                target = source
            encoder = _stack("encoder", settings.encoder, width, is_decoder=False)
            decoder = _stack("decoder", settings.decoder, width, is_decoder=True)
            head = _words(target.table, width, settings.head.tied, settings.head.bias)
            masks = (_mask(settings.encoder, everything()), _mask(settings.decoder, causal()))
            return EncoderDecoder(source, target, encoder, decoder, head, *masks)
        case config.DecoderOnly():
            prefix = None if settings.prefix is None else _media(settings.prefix, width)
            tokens = _tokens(settings.tokens, width)
            decoder = _stack("decoder", settings.decoder, width, is_decoder=True)
            answer = _head(settings.head, tokens, width, settings.decoder.norm)
            return DecoderOnly(prefix, tokens, decoder, answer, _mask(settings.decoder, causal()))
        case config.EncoderOnly():
            source = _input(settings.source, width)
            encoder = _stack("encoder", settings.encoder, width, is_decoder=False)
            answer = _head(settings.head, source, width, settings.encoder.norm)
            return EncoderOnly(source, encoder, answer, _mask(settings.encoder, everything()))
        case _:
            assert_never(settings)


def _input(settings: config.Input, width: int) -> TokenInput | PatchInput | MelInput:
    return _tokens(settings, width) if isinstance(settings, config.Tokens) else _media(settings, width)


def _tokens(settings: config.Tokens, width: int) -> TokenInput:
    types = nn.Embedding(settings.types, width) if settings.types else None
    return TokenInput(nn.Embedding(settings.vocabulary, width), types, settings.scale)


def _media(settings: config.Patches | config.Mel, width: int) -> PatchInput | MelInput:
    match settings:
        case config.Patches(patch=patch, channels=channels):
            class_token = nn.Parameter(torch.empty(width)) if settings.class_token else None
            return PatchInput(nn.Linear(channels * patch * patch, width), patch, class_token)
        case config.Mel(bins=bins, frames=frames):
            return MelInput(nn.Linear(frames * bins, width), bins, frames)
        case _:
            assert_never(settings)


def _words(table: nn.Embedding, width: int, tied: bool, bias: bool) -> WordHead:
    words = table if tied else nn.Linear(width, table.num_embeddings, bias=False)
    return WordHead(words, nn.Parameter(torch.empty(table.num_embeddings)) if bias else None)


def _head(
    settings: config.LMHead | config.MLMHead | config.Classes | config.Tags | config.NoHead,
    source: TokenInput | PatchInput | MelInput,
    width: int,
    norm: parts.Norm,
) -> WordHead | MaskedWordHead | ClassHead | TagHead | VectorHead:
    match settings:
        case config.LMHead() | config.MLMHead():
            assert isinstance(source, TokenInput)  # noqa: S101 - the configuration refuses anything else
            words = _words(source.table, width, settings.tied, settings.kind == "masked_words" or settings.bias)
            if isinstance(settings, config.LMHead):
                return words
            return MaskedWordHead(nn.Linear(width, width), settings.activation, _norm(norm, width), words)
        case config.Classes(labels=labels):
            dense = nn.Linear(width, width) if settings.hidden else None
            return ClassHead(dense, nn.Linear(width, len(labels)), settings.pool)
        case config.Tags(labels=labels):
            return TagHead(nn.Linear(width, len(labels)))
        case config.NoHead():
            return VectorHead()
        case _:
            assert_never(settings)


def _mask(settings: parts.Stack, mask: Mask) -> Mask:
    return mask if settings.window is None else mask & window(settings.window)


def _stack(name: str, settings: parts.Stack, width: int, is_decoder: bool) -> Stack:
    return Stack(
        name,
        _position(settings, width, is_decoder),
        _norm(settings.norm, width) if settings.input_norm else None,
        settings.dropout.token,
        settings.dropout.embedding,
        [_layer(f"{name}.{index}", index, settings, width) for index in range(settings.layers)],
        _norm(settings.norm, width) if settings.final_norm else None,
    )


def _layer(name: str, index: int, settings: parts.Stack, width: int) -> Layer:
    def around(place: str) -> Residual:
        norm = _norm(settings.norm, width)
        return Residual(f"{name}.{place}", norm, settings.placement == "pre", settings.dropout.sublayer)

    cross = settings.cross if isinstance(settings, parts.CrossStack) else None
    dropout = settings.dropout.attention
    return Layer(
        _attention(SelfAttention, f"{name}.self", index, settings.attention, width, dropout),
        around("self"),
        None if cross is None else _attention(CrossAttention, f"{name}.cross", index, cross, width, dropout),
        None if cross is None else around("cross"),
        _feedforward(settings.feedforward, width, settings.dropout.feedforward),
        around("feedforward"),
    )


def _attention(
    kind: type[SomeAttention], name: str, layer: int, settings: parts.Attention, width: int, dropout: float
) -> SomeAttention:
    heads, groups, bias = settings.heads, settings.groups, settings.bias
    key_dim, value_dim = settings.dims(width)
    norm = settings.query_key_norm
    return kind(
        name,
        layer,
        nn.Linear(width, heads * key_dim, bias=bias.query),
        nn.Linear(width, groups * key_dim, bias=bias.key),
        nn.Linear(width, groups * value_dim, bias=bias.value),
        nn.Linear(heads * value_dim, width, bias=bias.output),
        key_dim,
        value_dim,
        _score(settings.score, heads, key_dim),
        None if norm is None else _norm(norm, key_dim),
        None if norm is None else _norm(norm, key_dim),
        dropout,
    )


def _score(settings: parts.Score, heads: int, key_dim: int) -> Score:
    match settings:
        case parts.ScaledDot(scale=scale):
            return Score(1 / math.sqrt(key_dim) if scale is None else scale)
        case parts.Dot():
            return Score(1.0)
        case parts.General():
            return General(heads, key_dim)
        case parts.Concat(hidden=hidden):
            return Concat(heads, key_dim, hidden)
        case parts.Additive(hidden=hidden):
            return Additive(heads, key_dim, hidden)
        case _:
            assert_never(settings)


def _position(stack: parts.Stack, width: int, is_decoder: bool) -> Position:
    settings, heads = stack.position, stack.attention.heads
    match settings:
        case parts.Sinusoidal():
            return Sinusoidal(width, settings.base, settings.layout == "interleaved")
        case parts.Learned(length=length, offset=offset):
            return Learned(width, length, offset)
        case parts.Rotary(theta=theta):
            return Rotary(stack.attention.dims(width)[0], theta, settings.layout == "interleaved")
        case parts.Alibi():
            return Alibi(heads)
        case parts.Relative(buckets=buckets, distance=distance):
            tables = 1 if settings.shared else stack.layers
            return Relative(heads, buckets, distance, not is_decoder, tables)
        case parts.NoPosition():
            return Position()
        case _:
            assert_never(settings)


def _feedforward(settings: parts.FeedForward, width: int, dropout: float) -> FeedForward:
    hidden, bias = settings.hidden, settings.bias
    up, down = nn.Linear(width, hidden, bias), nn.Linear(hidden, width, bias)
    match settings:
        case parts.Plain():
            return FeedForward(up, None, down, settings.activation, dropout)
        case parts.Gated():
            return FeedForward(up, nn.Linear(width, hidden, bias), down, settings.activation, dropout)
        case _:
            assert_never(settings)


def _norm(settings: parts.Norm, size: int) -> nn.Module:
    match settings:
        case parts.LayerNorm():
            return make_norm("layer", size, settings.eps, settings.bias)
        case parts.RmsNorm():
            return make_norm("rms", size, settings.eps, bias=False)
        case _:
            assert_never(settings)
