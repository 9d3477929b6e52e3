"""Rules for the models that CTranslate2 can represent exactly. Imports no torch, because training checks them first."""

from collections.abc import Iterator

from regard.config.inputs import TokensConfig
from regard.config.model import (
    AnyModelConfig,
    ClassificationHeadConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    MLMHeadConfig,
    NoHeadConfig,
    TaggingHeadConfig,
)
from regard.config.parts import (
    AttentionConfig,
    RelativeConfig,
    StackConfig,
    attention_cross_stack,
    attention_stack,
)
from regard.exchange.rules import score_scale


def find_obstacles(model: AnyModelConfig) -> Iterator[str]:
    """Yield every setting that CTranslate2 does not support or that no test has verified."""
    stacks: dict[str, StackConfig] = {}
    if isinstance(model, EncoderDecoderConfig | EncoderOnlyConfig):
        stacks["encoder"] = attention_stack(model.encoder)
        if not isinstance(model.source, TokensConfig):
            yield f"source is {model.source.kind}: it reads tokens"
    if isinstance(model, EncoderDecoderConfig | DecoderOnlyConfig):
        stacks["decoder"] = attention_stack(model.decoder)
    if isinstance(model, DecoderOnlyConfig) and model.prefix is not None:
        yield f"prefix is {model.prefix.kind}: it reads tokens"
    if isinstance(model.head, MLMHeadConfig | ClassificationHeadConfig | TaggingHeadConfig):
        yield f"head is {model.head.kind}: it returns hidden states without a head"
    if isinstance(model.head, NoHeadConfig) and isinstance(model, DecoderOnlyConfig):
        yield "head is none: its generator requires lm"
    norms = [norm for stack in stacks.values() for norm in (stack.norm, stack.attention.query_key_norm)]
    if len({norm.eps for norm in norms if norm is not None}) > 1:
        yield "it requires the same eps in all norms"
    if (
        isinstance(model, EncoderOnlyConfig)
        and isinstance(model.source, TokensConfig)
        and model.source.types
        and model.source.scale
    ):
        yield "source.scale: it would also scale the token types"
    for path, stack in stacks.items():
        if stack.position.kind == "alibi" and not isinstance(model, DecoderOnlyConfig):
            yield f"{path}.position is alibi: only its decoder-only models have it"
        if isinstance(stack.position, RelativeConfig) and isinstance(model, DecoderOnlyConfig):
            yield f"{path}.position is relative: its decoder-only models lose count after a prompt"
        if stack.window is not None:
            yield f"{path}.window is not supported"
        yield from _find_attention_obstacles(f"{path}.attention", stack.attention, model.d_model)
    if isinstance(model, EncoderDecoderConfig):
        decoder = attention_cross_stack(model.decoder)
        yield from _find_attention_obstacles("decoder.cross", decoder.cross, model.d_model)
        self_attention, cross = decoder.attention, decoder.cross
        if (cross.heads, cross.groups, cross.dims(model.d_model)) != (
            self_attention.heads,
            self_attention.groups,
            self_attention.dims(model.d_model),
        ):
            yield "decoder.cross and decoder.attention differ in heads"
        if cross.query_key_norm is not None:
            yield "decoder.cross.query_key_norm is not supported: it normalizes before it splits heads"


def _find_attention_obstacles(path: str, attention: AttentionConfig, width: int) -> Iterator[str]:
    key_dim, value_dim = attention.dims(width)
    if score_scale(attention, key_dim) is None:
        yield f"{path}.score is {attention.score.kind} (it requires scaled_dot)"
    if value_dim != key_dim:
        yield f"{path}.value_dim is not key_dim"
