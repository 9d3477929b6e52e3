"""Which engines can represent a model exactly, and why others cannot. The settings decide it, before training.

>>> from regard.config.codec import preset
>>> [verdict.target for verdict in exportable_to(preset("tiny")) if verdict.is_exact]
['ctranslate2', 'huggingface:MarianMTModel']
>>> print(exportable_to(preset("tiny", {"encoder.window": 8}))[1])
huggingface:MarianMTModel: no, encoder.window is not supported

"Exactly" means equal logits up to rounding, and the same learned weights on both sides. A table that they store and
Regard computes (a sinusoid), or zeros that they store and Regard omits, are not learned weights. Every architecture
here has a weight map in `regard.exchange`, which `tests/exchange` checks with models. This module needs no torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from regard.config.inputs import SharedConfig, TokensConfig
from regard.config.model import (
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
from regard.config.parts import (
    AttentionConfig,
    DotConfig,
    LearnedConfig,
    PositionConfig,
    RecurrentConfig,
    RelativeConfig,
    RotaryConfig,
    ScaledDotConfig,
    SinusoidalConfig,
    StackConfig,
    attention_cross_stack,
    attention_stack,
)


@dataclass(frozen=True)
class Exportability:
    """Whether one engine can represent the model; it can if there are no obstacles."""

    target: str
    obstacles: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the engine can represent this model exactly."""
        return not self.obstacles

    def __str__(self) -> str:
        return f"{self.target}: yes" if self.is_exact else f"{self.target}: no, {'; '.join(self.obstacles)}"


@dataclass(frozen=True)
class ArchitectureRules:
    """Settings that a Hugging Face architecture requires of its stacks; None: any value."""

    norm_order: Literal["pre", "post"]
    norm: Literal["layer", "rms"]
    input_norm: bool
    positions: tuple[str, ...]
    feedforwards: tuple[str, ...]
    bias: tuple[str, ...]  # sets of projections that may have a bias
    feedforward_bias: bool | None
    eps: float | None = None
    grouped: bool = False
    free_key_dim: bool = False
    query_key_norm: bool = False
    scale: float | None = None  # scale of the scores; None: 1/sqrt(d_k)


ALL_BIASES = "query key value output"
POSITION_TABLES = ("sinusoidal/halves", "sinusoidal/interleaved")  # learned tables can store them
MARIAN = ArchitectureRules("post", "layer", False, ("sinusoidal/halves",), ("plain",), (ALL_BIASES,), True, eps=1e-5)
PEGASUS = replace(MARIAN, norm_order="pre")
BART = replace(MARIAN, input_norm=True, positions=("learned+2", *POSITION_TABLES))
MBART = replace(BART, norm_order="pre")
BERT = replace(BART, positions=("learned+0", *POSITION_TABLES), eps=None)
ESM = replace(BERT, norm_order="pre", input_norm=False, positions=("rotary/halves",), feedforwards=("plain gelu",))
GPT2 = replace(BERT, norm_order="pre", input_norm=False)
LLAMA = replace(
    GPT2,
    norm="rms",
    positions=("rotary/halves",),
    feedforwards=("gated",),
    bias=("none", ALL_BIASES),
    feedforward_bias=None,
    grouped=True,
    free_key_dim=True,
)
QWEN2 = replace(LLAMA, bias=("query key value",), feedforward_bias=False, free_key_dim=False)
QWEN3 = replace(LLAMA, feedforward_bias=False, query_key_norm=True)
T5 = replace(
    LLAMA,
    positions=("relative",),
    feedforwards=("plain relu", "gated gelu_tanh"),
    bias=("none",),
    feedforward_bias=False,
    grouped=False,
    scale=1.0,
)

ENCODER_DECODERS = {
    "MarianMTModel": MARIAN,
    "PegasusForConditionalGeneration": PEGASUS,
    "BartForConditionalGeneration": BART,
    "MBartForConditionalGeneration": MBART,
    "T5ForConditionalGeneration": T5,
}
DECODER_ONLY_MODELS = {
    "GPT2LMHeadModel": GPT2,
    "LlamaForCausalLM": LLAMA,
    "Qwen2ForCausalLM": QWEN2,
    "Qwen3ForCausalLM": QWEN3,
}
ENCODER_ONLY_MODELS = {"Bert": BERT, "Esm": ESM}
ENCODER_ONLY_HEADS = {
    MLMHeadConfig: "ForMaskedLM",
    ClassificationHeadConfig: "ForSequenceClassification",
    TaggingHeadConfig: "ForTokenClassification",
    NoHeadConfig: "Model",
}
ARCHITECTURES = {
    **ENCODER_DECODERS,
    **DECODER_ONLY_MODELS,
    **{name + head: rules for name, rules in ENCODER_ONLY_MODELS.items() for head in ENCODER_ONLY_HEADS.values()},
}
"""The supported Hugging Face architectures and their rules."""


def exportable_to(model: AnyModelConfig) -> tuple[Exportability, ...]:
    """Return the verdict of every engine: CTranslate2 first, then the Hugging Face architectures of the family."""
    if recurrent := tuple(find_layer_obstacles(model)):
        names = {"encoder_decoder": ENCODER_DECODERS, "decoder_only": DECODER_ONLY_MODELS}.get(model.family)
        suffix = "" if names else ENCODER_ONLY_HEADS.get(type(model.head), "Model")
        engines = ("ctranslate2", *(f"huggingface:{name}{suffix}" for name in names or ENCODER_ONLY_MODELS))
        return tuple(Exportability(engine, recurrent) for engine in engines)
    match model:
        case EncoderDecoderConfig():
            obstacles_by_name = {
                name: _find_encoder_decoder_obstacles(name, rules, model) for name, rules in ENCODER_DECODERS.items()
            }
        case DecoderOnlyConfig():
            obstacles_by_name = {
                name: _find_decoder_only_obstacles(rules, model) for name, rules in DECODER_ONLY_MODELS.items()
            }
        case EncoderOnlyConfig():
            suffix = ENCODER_ONLY_HEADS[type(model.head)]
            obstacles_by_name = {
                name + suffix: _find_encoder_only_obstacles(name, rules, model)
                for name, rules in ENCODER_ONLY_MODELS.items()
            }
        case _:
            assert_never(model)
    verdicts = [Exportability("ctranslate2", tuple(_find_ctranslate2_obstacles(model)))]
    verdicts += [
        Exportability(f"huggingface:{name}", tuple(obstacles)) for name, obstacles in obstacles_by_name.items()
    ]
    return tuple(verdicts)


ExportTarget = Literal["ctranslate2", "huggingface", "onnx", "web"]


def find_target_obstacles(model: AnyModelConfig, target: ExportTarget) -> tuple[str, ...]:
    """Return why an export target cannot represent the model; of several architectures, those of the closest one.

    Graphs (`onnx`, `web`) hold every model of attention layers. What such an export may lack is found when it is made.

    >>> from regard.config.codec import preset
    >>> find_target_obstacles(preset("tiny", {"encoder.window": 8}), "ctranslate2")
    ('encoder.window is not supported',)
    >>> find_target_obstacles(preset("tiny"), "huggingface")
    ()
    """
    if recurrent := tuple(find_layer_obstacles(model)):
        return recurrent
    verdicts = [verdict for verdict in exportable_to(model) if verdict.target.partition(":")[0] == target]
    return min((verdict.obstacles for verdict in verdicts), key=len, default=())


def find_layer_obstacles(model: AnyModelConfig) -> Iterator[str]:
    """Yield what no export target can hold: all of them run attention layers, on text, and have none of word2vec.

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


def _find_encoder_decoder_obstacles(name: str, rules: ArchitectureRules, model: EncoderDecoderConfig) -> Iterator[str]:
    encoder, decoder = attention_stack(model.encoder), attention_cross_stack(model.decoder)
    yield from _find_stack_obstacles(rules, "encoder", encoder, model.d_model)
    yield from _find_stack_obstacles(rules, "decoder", decoder, model.d_model)
    yield from _find_attention_obstacles(rules, "decoder.cross", decoder.cross, model.d_model)
    if not isinstance(model.source, TokensConfig):
        yield f"source is {model.source.kind} (it requires tokens)"
    if not isinstance(model.target, SharedConfig) and name != "MarianMTModel":
        yield "target has its own embeddings (it shares those of the source)"
    if isinstance(model.source, TokensConfig) and model.source.scale != model.target_tokens.scale:
        yield "source.scale is not target.scale"
    if encoder.position != decoder.position:
        yield "encoder and decoder have different positions"
    if encoder.feedforward.activation != decoder.feedforward.activation:
        yield "encoder and decoder have different activations"
    if decoder.cross.heads != decoder.attention.heads:
        yield "decoder.cross.heads is not decoder.attention.heads"
    if name == "T5ForConditionalGeneration":
        yield from _find_t5_obstacles(model)
    elif not model.head.tied:
        yield "head.tied is false"


def _find_t5_obstacles(model: EncoderDecoderConfig) -> Iterator[str]:
    """Yield the obstacles of T5, whose config holds most settings once for both stacks."""
    encoder, decoder = attention_stack(model.encoder), attention_cross_stack(model.decoder)
    if encoder.attention != decoder.attention or encoder.attention != decoder.cross:
        yield "it requires the same attention settings everywhere"
    if encoder.norm != decoder.norm:
        yield "it requires the same norm in both stacks"
    if encoder.feedforward != decoder.feedforward:
        yield "it requires the same feed-forward settings in both stacks"
    if model.target_tokens.scale:
        yield "source.scale is not supported"
    if model.head.bias:
        yield "head.bias is not supported"


def _find_decoder_only_obstacles(rules: ArchitectureRules, model: DecoderOnlyConfig) -> Iterator[str]:
    yield from _find_stack_obstacles(rules, "decoder", attention_stack(model.decoder), model.d_model)
    if model.prefix is not None:
        yield f"prefix of {model.prefix.kind} is not supported"
    if model.tokens.scale:
        yield "tokens.scale is not supported"
    if not isinstance(model.head, LMHeadConfig):
        yield f"head is {model.head.kind} (it requires lm)"
    elif model.head.bias:
        yield "head.bias is not supported"


def _find_encoder_only_obstacles(name: str, rules: ArchitectureRules, model: EncoderOnlyConfig) -> Iterator[str]:
    encoder = attention_stack(model.encoder)
    yield from _find_stack_obstacles(rules, "encoder", encoder, model.d_model)
    if not isinstance(model.source, TokensConfig):
        yield f"source is {model.source.kind} (it requires tokens)"
    elif model.source.scale:
        yield "source.scale is not supported"
    if isinstance(model.head, ClassificationHeadConfig) and (not model.head.hidden or model.head.pool != "first"):
        yield "its classifier has a hidden layer over the first vector (train with --set model.head.pool=first)"
    if isinstance(model.head, MLMHeadConfig):
        if model.head.activation != encoder.feedforward.activation:
            yield "it requires the same activation in feed-forward and head"
        if not model.head.tied:
            yield "head.tied is false"  # untied, it has a second bias that its output does not use
        if name == "Esm" and isinstance(model.source, TokensConfig) and model.source.types:
            yield "source.types is not 0 (the export adds the first type to tokens, but here they are the output too)"


def _find_stack_obstacles(rules: ArchitectureRules, path: str, stack: StackConfig, width: int) -> Iterator[str]:
    """Yield the settings of a stack that an architecture does not support."""
    if stack.norm_order != rules.norm_order:
        yield f"{path}.norm_order is {stack.norm_order} (it requires {rules.norm_order})"
    if stack.norm.kind != rules.norm:
        yield f"{path}.norm is {stack.norm.kind} (it requires {rules.norm})"
    elif rules.eps is not None and stack.norm.eps != rules.eps:
        yield f"{path}.norm.eps is {stack.norm.eps} (it requires {rules.eps})"
    if stack.norm.kind == "layer" and not stack.norm.bias:
        yield f"{path}.norm has no bias"
    if stack.input_norm != rules.input_norm:
        yield f"{path}.input_norm is {str(stack.input_norm).lower()}"
    if stack.final_norm != (rules.norm_order == "pre"):
        yield f"{path}.final_norm is {str(stack.final_norm).lower()}"
    if (position := describe_position(stack.position)) not in rules.positions:
        yield f"{path}.position is {position} (it requires {' or '.join(rules.positions)})"
    if "sinusoidal/halves" in rules.positions[:1] and getattr(stack.position, "base", 10000.0) != 10000.0:
        yield f"{path}.position.base is not 10000"
    kind = stack.feedforward.kind
    if kind not in rules.feedforwards and f"{kind} {stack.feedforward.activation}" not in rules.feedforwards:
        required = " or ".join(rules.feedforwards)
        yield f"{path}.feedforward is {kind} {stack.feedforward.activation} (it requires {required})"
    if rules.feedforward_bias is not None and stack.feedforward.bias != rules.feedforward_bias:
        yield f"{path}.feedforward.bias is {str(stack.feedforward.bias).lower()}"
    if stack.window is not None:
        yield f"{path}.window is not supported"
    yield from _find_attention_obstacles(rules, f"{path}.attention", stack.attention, width)
    if stack.attention.query_key_norm is not None and stack.attention.query_key_norm != stack.norm:
        yield f"{path}.attention.query_key_norm is not the stack's norm"


def _find_attention_obstacles(
    rules: ArchitectureRules, path: str, attention: AttentionConfig, width: int
) -> Iterator[str]:
    """Yield the settings of an attention that an architecture does not support."""
    key_dim, value_dim = attention.dims(width)
    scale = _score_scale(attention, key_dim)
    if scale is None:
        yield f"{path}.score is {attention.score.kind} (it requires scaled_dot)"
    elif scale != (rules.scale or key_dim**-0.5):
        yield f"{path}.score multiplies by {scale:.4g} (it requires {rules.scale or key_dim**-0.5:.4g})"
    if attention.groups != attention.heads and not rules.grouped:
        yield f"{path}.key_value_heads is not heads"
    if key_dim * attention.heads != width and not rules.free_key_dim:
        yield f"{path}.key_dim is not d_model / heads"
    if value_dim != key_dim:
        yield f"{path}.value_dim is not key_dim"
    if (attention.query_key_norm is not None) != rules.query_key_norm:
        yield f"{path}.query_key_norm is {'set' if attention.query_key_norm else 'not set'}"
    if (bias := describe_bias(attention)) not in rules.bias:
        yield f"{path}.bias is on {bias} (it requires {' or '.join(rules.bias)})"


def _find_ctranslate2_obstacles(model: AnyModelConfig) -> Iterator[str]:
    """Yield the obstacles of CTranslate2: every setting that no test has shown to be equal."""
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
        yield from _find_ctranslate2_attention_obstacles(f"{path}.attention", stack.attention, model.d_model)
    if isinstance(model, EncoderDecoderConfig):
        decoder = attention_cross_stack(model.decoder)
        yield from _find_ctranslate2_attention_obstacles("decoder.cross", decoder.cross, model.d_model)
        self_attention, cross = decoder.attention, decoder.cross
        if (cross.heads, cross.groups, cross.dims(model.d_model)) != (
            self_attention.heads,
            self_attention.groups,
            self_attention.dims(model.d_model),
        ):
            yield "decoder.cross and decoder.attention differ in heads"
        if cross.query_key_norm is not None:
            yield "decoder.cross.query_key_norm is not supported: it normalizes before it splits heads"


def _find_ctranslate2_attention_obstacles(path: str, attention: AttentionConfig, width: int) -> Iterator[str]:
    key_dim, value_dim = attention.dims(width)
    if _score_scale(attention, key_dim) is None:
        yield f"{path}.score is {attention.score.kind} (it requires scaled_dot)"
    if value_dim != key_dim:
        yield f"{path}.value_dim is not key_dim"


def _score_scale(attention: AttentionConfig, key_dim: int) -> float | None:
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
