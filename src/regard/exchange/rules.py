"""Rules that all export targets share, and descriptions of settings. Imports no torch."""

from collections.abc import Iterator

from regard.config.model import AnyModelConfig, BagHeadConfig, DecoderOnlyConfig, PatchHeadConfig
from regard.config.parts import (
    AttentionConfig,
    CrossStackConfig,
    CustomConfig,
    DotConfig,
    LearnedConfig,
    PositionConfig,
    RecurrentConfig,
    RotaryConfig,
    ScaledDotConfig,
    SinusoidalConfig,
)


def find_layer_obstacles(model: AnyModelConfig) -> Iterator[str]:
    """Yield settings that no export target supports: targets run attention layers on text, and not word2vec.

    >>> from regard.config.codec import preset
    >>> list(find_layer_obstacles(preset("lstm")))
    ['decoder.kind is recurrent (it runs attention layers only)']
    """
    stacks = {name: getattr(model, name) for name in ("encoder", "decoder") if hasattr(model, name)}
    if isinstance(model, DecoderOnlyConfig) and model.raster is not None:
        yield "raster is set: the tokens are pixels (its tokens are text)"
    if isinstance(model.head, BagHeadConfig):
        yield "head.kind is bag (it runs attention layers only)"
    if isinstance(model.head, PatchHeadConfig):
        yield "head.kind is pixels (its heads are of text)"
    for name, stack in stacks.items():
        if isinstance(stack, RecurrentConfig):
            yield f"{name}.kind is recurrent (it runs attention layers only)"
            continue
        attentions = [stack.attention, *([stack.cross] if isinstance(stack, CrossStackConfig) else ())]
        for part in (stack.position, stack.feedforward, *(attention.score for attention in attentions)):
            if isinstance(part, CustomConfig):
                yield f"{name} has the registered module '{part.name}' (it runs modules of Regard only)"


def score_scale(attention: AttentionConfig, key_dim: int) -> float | None:
    """Return the scale of q.k if the score is a dot product."""
    if isinstance(attention.score, ScaledDotConfig):
        return attention.score.scale or key_dim**-0.5
    return 1.0 if isinstance(attention.score, DotConfig) else None


def describe_position(position: PositionConfig) -> str:
    """Describe a position encoding in a few words.

    >>> describe_position(RotaryConfig())
    'rotary/halves'
    """
    match position:
        case SinusoidalConfig(layout=layout) | RotaryConfig(layout=layout):
            return f"{position.kind}/{layout}"
        case LearnedConfig(offset=offset):
            return f"learned+{offset}"
        case _:
            return position.kind


def describe_bias(attention: AttentionConfig) -> str:
    """Describe which projections have a bias.

    >>> describe_bias(AttentionConfig(heads=8))
    'query key value output'
    """
    return " ".join(name for name, is_on in attention.bias.model_dump().items() if is_on) or "none"
