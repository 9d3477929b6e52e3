"""Build a model from its configuration. This is the only place that maps kinds to modules.

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

from regard.base import cpu_fast_path
from regard.base.arguments import check_type
from regard.config import parts
from regard.config.inputs import InputConfig, MelConfig, PatchesConfig, TokensConfig
from regard.config.model import (
    AnyModelConfig,
    BagHeadConfig,
    BaseModelConfig,
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
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import BagHead, ClassHead, IdentityHead, LMHead, MLMHead, PixelHead, TagHead
from regard.models.init import init_weights
from regard.models.inputs import (
    ConvolutionInput,
    ConvolutionMelInput,
    LinearMelInput,
    MelInput,
    PatchInput,
    TokenInput,
)
from regard.nn.attention import Attention, CrossAttention, SelfAttention
from regard.nn.autocast_attention import AutocastCrossAttention, AutocastSelfAttention
from regard.nn.feedforward import FeedForward
from regard.nn.layer import Layer, Residual
from regard.nn.masks import Mask, causal, no_mask, window
from regard.nn.norm import make_norm
from regard.nn.positions import Alibi, Learned, Position, RelativeBias, Rotary, Sinusoidal, Sinusoidal2d
from regard.nn.recurrent import CELLS, Recurrent, RecurrentLayer
from regard.nn.registry import make_custom
from regard.nn.scores import Additive, Concat, General, ScoreFunction
from regard.nn.stack import Stack

AnyModel = EncoderDecoder | DecoderOnly | EncoderOnly
AttentionType = TypeVar("AttentionType", bound=Attention)


@overload
def build(settings: EncoderDecoderConfig, seed: int | None = None, *, initialize: bool = True) -> EncoderDecoder: ...
@overload
def build(settings: DecoderOnlyConfig, seed: int | None = None, *, initialize: bool = True) -> DecoderOnly: ...
@overload
def build(settings: EncoderOnlyConfig, seed: int | None = None, *, initialize: bool = True) -> EncoderOnly: ...
@overload
def build(settings: AnyModelConfig, seed: int | None = None, *, initialize: bool = True) -> AnyModel: ...
def build(settings: AnyModelConfig, seed: int | None = None, *, initialize: bool = True) -> AnyModel:
    """Build a model with initial weights.

    On another device: `with torch.device("cuda"): build(...)`. On "meta" no weights are initialized; call
    `init_weights(model, settings)` once the model has been materialized.

    Args:
        settings: The model's configuration.
        seed: Random seed of the initial weights. Default: taken from torch's default generator.
        initialize: Whether to initialize the weights; without it they are undefined until they are loaded.
    """
    check_type("settings", settings, BaseModelConfig, "model settings, for example regard.preset('tiny')")
    check_type("seed", seed, int | None, "a number")
    if not initialize or torch.get_default_device().type == "meta":
        with _SkipInit():
            return _assemble(settings)
    model = _assemble(settings)
    init_weights(model, settings, seed)
    return model


class _SkipInit(TorchFunctionMode):
    """Disables `nn.init`, which is slow and, for meta tensors, makes torch import its compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the tensor unchanged for `nn.init` functions; call all others."""
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def _assemble(settings: AnyModelConfig) -> AnyModel:
    width = settings.d_model
    match settings:
        case EncoderDecoderConfig():
            source = _make_input(settings.source, width)
            if isinstance(settings.target, TokensConfig):
                target = _make_token_input(settings.target, width)
            else:
                assert isinstance(source, TokenInput)  # noqa: S101 - validated by the configuration
                target = source
            encoder = _make_stack("encoder", settings.encoder, width, is_decoder=False)
            decoder = _make_stack("decoder", settings.decoder, width, is_decoder=True)
            head = _make_lm_head(target.embedding, width, settings.head.tied, settings.head.bias)
            masks = (_make_mask(settings.encoder, no_mask()), _make_mask(settings.decoder, causal()))
            return EncoderDecoder(source, target, encoder, decoder, head, *masks)
        case DecoderOnlyConfig():
            prefix = None if settings.prefix is None else _make_media_input(settings.prefix, width)
            tokens = _make_token_input(settings.tokens, width)
            decoder = _make_stack("decoder", settings.decoder, width, is_decoder=True)
            output_head = _make_head(settings.head, tokens, width, settings.decoder)
            return DecoderOnly(prefix, tokens, decoder, output_head, _make_mask(settings.decoder, causal()))
        case EncoderOnlyConfig():
            source = _make_input(settings.source, width)
            encoder = _make_stack("encoder", settings.encoder, width, is_decoder=False)
            encoder_head: PixelHead | BagHead | LMHead | MLMHead | ClassHead | TagHead | IdentityHead
            match settings.head:
                case PatchHeadConfig():
                    encoder_head = _make_pixel_head(settings.head, settings, source)
                case BagHeadConfig(window=window):
                    assert isinstance(source, TokenInput)  # noqa: S101 - validated by the configuration
                    lm_head = _make_lm_head(source.embedding, width, tied=False, bias=False)
                    encoder_head = BagHead(window if settings.task == "cbow" else 0, lm_head)
                case _:
                    encoder_head = _make_head(settings.head, source, width, settings.encoder)
            return EncoderOnly(source, encoder, encoder_head, _make_mask(settings.encoder, no_mask()))
        case _:
            assert_never(settings)


def _make_input(settings: InputConfig, width: int) -> TokenInput | PatchInput | MelInput:
    return (
        _make_token_input(settings, width) if isinstance(settings, TokensConfig) else _make_media_input(settings, width)
    )


def _make_token_input(settings: TokensConfig, width: int) -> TokenInput:
    types = nn.Embedding(settings.types, width) if settings.types else None
    return TokenInput(nn.Embedding(settings.vocabulary, width), types, settings.scale)


def _make_media_input(settings: PatchesConfig | MelConfig, width: int) -> PatchInput | MelInput:
    match settings:
        case PatchesConfig(patch=patch, channels=channels):
            class_token = nn.Parameter(torch.empty(width)) if settings.class_token else None
            if settings.stem == "convolution":
                stem = _make_stem(channels, width, patch)
                return ConvolutionInput(stem, nn.Linear(width, width), channels, patch, class_token)
            return PatchInput(nn.Linear(channels * patch * patch, width), channels, patch, class_token)
        case MelConfig(bins=bins, frames=frames):
            if settings.stem == "convolution":
                conv1 = nn.Conv1d(bins, width, 3, padding=1)
                conv2 = nn.Conv1d(width, width, 3, stride=frames, padding=1)
                return ConvolutionMelInput(conv1, conv2, bins, frames)
            return LinearMelInput(nn.Linear(frames * bins, width), bins, frames)
        case _:
            assert_never(settings)


def _make_stem(channels: int, width: int, patch: int) -> nn.Sequential:
    """Make convolutions that halve the image log2(patch) times; the last one has `width` channels."""
    modules: list[nn.Module] = []
    steps = patch.bit_length() - 1
    for step in range(steps):
        outputs = max(1, width >> (steps - 1 - step))
        modules += [nn.Conv2d(channels, outputs, 3, stride=2, padding=1), nn.GELU()]
        channels = outputs
    return nn.Sequential(*modules)


def _make_lm_head(embedding: nn.Embedding, width: int, tied: bool, bias: bool) -> LMHead:
    projection = embedding if tied else nn.Linear(width, embedding.num_embeddings, bias=False)
    return LMHead(projection, nn.Parameter(torch.empty(embedding.num_embeddings)) if bias else None)


def _make_pixel_head(
    head: PatchHeadConfig, settings: EncoderOnlyConfig, source: TokenInput | PatchInput | MelInput
) -> PixelHead:
    assert isinstance(source, PatchInput)  # noqa: S101 - validated by the configuration
    stack = settings.encoder.model_copy(update={"layers": head.layers})
    return PixelHead(
        nn.Parameter(torch.empty(settings.d_model)),
        _make_stack("head", stack, settings.d_model, is_decoder=False),
        nn.Linear(settings.d_model, source.channels * source.patch**2),
        int(source.class_token is not None),
    )


def _make_head(
    settings: LMHeadConfig | MLMHeadConfig | ClassificationHeadConfig | TaggingHeadConfig | NoHeadConfig,
    source: TokenInput | PatchInput | MelInput,
    width: int,
    stack: parts.StackConfig | parts.RecurrentConfig,
) -> LMHead | MLMHead | ClassHead | TagHead | IdentityHead:
    match settings:
        case LMHeadConfig() | MLMHeadConfig():
            assert isinstance(source, TokenInput)  # noqa: S101 - validated by the configuration
            lm_head = _make_lm_head(source.embedding, width, settings.tied, settings.kind == "mlm" or settings.bias)
            if isinstance(settings, LMHeadConfig):
                return lm_head
            norm = stack.norm if isinstance(stack, parts.StackConfig) else parts.LayerNormConfig()
            return MLMHead(nn.Linear(width, width), settings.activation, _make_norm(norm, width), lm_head)
        case ClassificationHeadConfig(labels=labels):
            dense = nn.Linear(width, width) if settings.hidden else None
            return ClassHead(dense, nn.Linear(width, len(labels)), settings.pool)
        case TaggingHeadConfig(labels=labels):
            return TagHead(nn.Linear(width, len(labels)))
        case NoHeadConfig():
            return IdentityHead()
        case _:
            assert_never(settings)


def _make_mask(settings: parts.StackConfig | parts.RecurrentConfig, mask: Mask) -> Mask:
    if isinstance(settings, parts.RecurrentConfig) or settings.window is None:
        return mask
    return mask & window(settings.window)


def _make_stack(name: str, settings: parts.StackConfig | parts.RecurrentConfig, width: int, is_decoder: bool) -> Stack:
    if isinstance(settings, parts.RecurrentConfig):
        layers = [_make_recurrent_layer(f"{name}.{index}", settings, width) for index in range(settings.layers)]
        return Recurrent(name, settings.dropout.token, settings.dropout.embedding, layers)
    return Stack(
        name,
        _make_position(settings, width, is_decoder),
        _make_norm(settings.norm, width) if settings.input_norm else None,
        settings.dropout.token,
        settings.dropout.embedding,
        [_make_layer(f"{name}.{index}", settings, width) for index in range(settings.layers)],
        _make_norm(settings.norm, width) if settings.final_norm else None,
    )


def _make_layer(name: str, settings: parts.StackConfig, width: int) -> Layer:
    def make_residual(sublayer: str) -> Residual:
        norm = _make_norm(settings.norm, width)
        return Residual(f"{name}.{sublayer}", norm, settings.norm_order == "pre", settings.dropout.sublayer)

    is_fast = cpu_fast_path.is_enabled()
    self_attention = AutocastSelfAttention if is_fast else SelfAttention
    cross_attention = AutocastCrossAttention if is_fast else CrossAttention
    cross = settings.cross if isinstance(settings, parts.CrossStackConfig) else None
    dropout = settings.dropout.attention
    return Layer(
        _make_attention(self_attention, f"{name}.self", settings.attention, width, dropout),
        make_residual("self"),
        None if cross is None else _make_attention(cross_attention, f"{name}.cross", cross, width, dropout),
        None if cross is None else make_residual("cross"),
        _make_feedforward(settings.feedforward, width, settings.dropout.feedforward),
        make_residual("feedforward"),
    )


def _make_recurrent_layer(name: str, settings: parts.RecurrentConfig, width: int) -> RecurrentLayer:
    memory = settings.cross if isinstance(settings, parts.CrossRecurrentConfig) else None
    inputs = 2 * width if memory is not None and memory.kind != "luong" else width
    state = width // 2 if settings.bidirectional else width
    cross = None
    if isinstance(memory, parts.LuongConfig | parts.BahdanauConfig):
        projections: list[Any] = [nn.Identity() for _ in range(4)]  # states attend to states
        score, dropout = _make_score(memory.score, 1, width), settings.dropout.attention
        query, key, value, output = projections
        cross = CrossAttention(f"{name}.cross", query, key, value, output, width, width, score, None, None, dropout)
    return RecurrentLayer(
        name,
        CELLS[settings.cell](inputs, state, batch_first=True, bidirectional=settings.bidirectional),
        None if memory is None else memory.kind,
        cross,
        None if memory is None else nn.Linear(2 * width, width),
        settings.dropout.sublayer,
    )


def _make_attention(
    kind: type[AttentionType], name: str, settings: parts.AttentionConfig, width: int, dropout: float
) -> AttentionType:
    heads, groups, bias = settings.heads, settings.groups, settings.bias
    key_dim, value_dim = settings.dims(width)
    norm = settings.query_key_norm
    return kind(
        name,
        nn.Linear(width, heads * key_dim, bias=bias.query),
        nn.Linear(width, groups * key_dim, bias=bias.key),
        nn.Linear(width, groups * value_dim, bias=bias.value),
        nn.Linear(heads * value_dim, width, bias=bias.output),
        key_dim,
        value_dim,
        _make_score(settings.score, heads, key_dim),
        None if norm is None else _make_norm(norm, key_dim),
        None if norm is None else _make_norm(norm, key_dim),
        dropout,
    )


def _make_score(settings: parts.ScoreConfig, heads: int, key_dim: int) -> ScoreFunction:
    match settings:
        case parts.ScaledDotConfig(scale=scale):
            return ScoreFunction(1 / math.sqrt(key_dim) if scale is None else scale)
        case parts.DotConfig():
            return ScoreFunction(1.0)
        case parts.GeneralConfig():
            return General(heads, key_dim)
        case parts.ConcatConfig(hidden=hidden):
            return Concat(heads, key_dim, hidden)
        case parts.AdditiveConfig(hidden=hidden):
            return Additive(heads, key_dim, hidden)
        case parts.CustomConfig(name=name):
            return make_custom("score", name, ScoreFunction, heads=heads, key_dim=key_dim)
        case _:
            assert_never(settings)


def _make_position(stack: parts.StackConfig, width: int, is_decoder: bool) -> Position:
    settings, heads = stack.position, stack.attention.heads
    match settings:
        case parts.SinusoidalConfig():
            return Sinusoidal(width, settings.base, settings.layout == "interleaved")
        case parts.Sinusoidal2dConfig(columns=columns, first=first):
            return Sinusoidal2d(width, columns, first, settings.base)
        case parts.LearnedConfig(length=length, offset=offset):
            return Learned(width, length, offset)
        case parts.RotaryConfig(theta=theta):
            return Rotary(stack.attention.dims(width)[0], theta, settings.layout == "interleaved")
        case parts.AlibiConfig():
            return Alibi(heads)
        case parts.RelativeConfig(buckets=buckets, distance=distance):
            return RelativeBias(heads, buckets, distance, not is_decoder)
        case parts.NoPositionConfig():
            return Position()
        case parts.CustomConfig(name=name):
            return make_custom("position", name, Position, d_model=width, heads=heads)
        case _:
            assert_never(settings)


def _make_feedforward(settings: parts.AnyFeedForwardConfig, width: int, dropout: float) -> FeedForward:
    if isinstance(settings, parts.CustomFeedForwardConfig):
        arguments = settings.model_dump(include={"d_ff", "activation", "bias"})
        return make_custom("feedforward", settings.name, nn.Module, d_model=width, dropout=dropout, **arguments)
    hidden, bias = settings.d_ff, settings.bias
    up, down = nn.Linear(width, hidden, bias), nn.Linear(hidden, width, bias)
    match settings:
        case parts.FeedForwardConfig():
            return FeedForward(up, None, down, settings.activation, dropout)
        case parts.GLUConfig():
            return FeedForward(up, nn.Linear(width, hidden, bias), down, settings.activation, dropout)
        case _:
            assert_never(settings)


def _make_norm(settings: parts.NormConfig, size: int) -> nn.Module:
    match settings:
        case parts.LayerNormConfig():
            return make_norm("layer", size, settings.eps, settings.bias)
        case parts.RmsNormConfig():
            return make_norm("rms", size, settings.eps, bias=False)
        case _:
            assert_never(settings)
