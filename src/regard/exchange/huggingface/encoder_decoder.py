"""Marian, Pegasus, BART, MBart and T5: the configs of encoder-decoders."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from regard.config.inputs import SharedConfig, TokensConfig
from regard.config.model import EncoderDecoderConfig
from regard.config.parts import attention_stack
from regard.exchange import encoder_decoder as maps
from regard.exchange.huggingface.architecture import (
    Architecture,
    SettingsTable,
    count_positions,
    read_dropout,
    stored_sinusoid,
)
from regard.exchange.huggingface.config_reader import ACTIVATIONS, Config, ConfigReader
from regard.exchange.mapping import WeightMap

BART_OFFSET = 2  # unused rows before the first learned position of BART and MBart
NO_BIAS = {"query": False, "key": False, "value": False, "output": False}


# The BART family.


def _write_bart_family(settings: EncoderDecoderConfig, max_positions: int) -> Config:
    source, encoder = settings.source, attention_stack(settings.encoder)
    assert isinstance(source, TokensConfig)  # noqa: S101 - `exportable_to` refuses other inputs
    config: Config = {
        "is_encoder_decoder": True,
        "vocab_size": source.vocabulary,
        "d_model": settings.d_model,
        "scale_embedding": source.scale,
        "activation_function": ACTIVATIONS[encoder.feedforward.activation],
        "max_position_embeddings": count_positions(encoder.position, max_positions),
        "dropout": encoder.dropout.sublayer,
        "attention_dropout": encoder.dropout.attention,
        "activation_dropout": encoder.dropout.feedforward,
        "tie_word_embeddings": True,
    }
    for name, stack in (("encoder", encoder), ("decoder", attention_stack(settings.decoder))):
        config |= {
            f"{name}_layers": stack.layers,
            f"{name}_attention_heads": stack.attention.heads,
            f"{name}_ffn_dim": stack.feedforward.d_ff,
        }
    return config


def _write_marian(settings: EncoderDecoderConfig, max_positions: int) -> Config:
    is_shared = isinstance(settings.target, SharedConfig)
    return {
        **_write_bart_family(settings, max_positions),
        "share_encoder_decoder_embeddings": is_shared,
        "decoder_vocab_size": settings.target_tokens.vocabulary,
    }


def _write_pegasus(settings: EncoderDecoderConfig, max_positions: int) -> Config:
    return {**_write_bart_family(settings, max_positions), "normalize_before": True, "add_final_layer_norm": True}


def _make_bart_reader(
    norm_order: str, *, input_norm: bool, is_learned: bool
) -> Callable[[ConfigReader, Mapping[str, Tensor]], SettingsTable]:
    """Return the function that reads a config of the BART family."""

    def read(config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:
        is_shared = config.flag("share_encoder_decoder_embeddings", True)
        if is_shared or norm_order == "pre":  # only Marian may untie the output, and only without shared embeddings
            config.require("tie_word_embeddings", True, True)
        config.require("is_encoder_decoder", True, True)
        vocabulary, scale = config.integer("vocab_size"), config.flag("scale_embedding", False)
        tokens = {"kind": "tokens", "scale": scale}
        target: SettingsTable = {"kind": "shared"}
        if not is_shared:
            target = tokens | {"vocabulary": config.integer("decoder_vocab_size", vocabulary)}
        length = config.integer("max_position_embeddings", 1024)
        position: SettingsTable = {"kind": "sinusoidal", "layout": "halves"}
        if is_learned:
            position = {"kind": "learned", "length": length, "offset": BART_OFFSET}
        activation = config.activation("activation_function", "gelu")
        dropout = read_dropout(
            config.rate("dropout", 0.1), config.rate("attention_dropout"), config.rate("activation_dropout")
        )
        stacks: dict[str, SettingsTable] = {}
        for name in ("encoder", "decoder"):
            attention = {"heads": config.integer(f"{name}_attention_heads", 16)}
            stacks[name] = {
                "layers": config.integer(f"{name}_layers", 12),
                "norm_order": norm_order,
                "norm": {"kind": "layer", "eps": 1e-5},
                "input_norm": input_norm,
                "final_norm": norm_order == "pre",
                "position": position,
                "attention": attention,
                "feedforward": {
                    "kind": "plain",
                    "d_ff": config.integer(f"{name}_ffn_dim", 4096),
                    "activation": activation,
                },
                "dropout": dropout,
            }
        stacks["decoder"]["cross"] = stacks["decoder"]["attention"]
        return {
            "family": "encoder_decoder",
            "task": "translate",
            "d_model": config.integer("d_model"),
            "source": tokens | {"vocabulary": vocabulary},
            "target": target,
            **stacks,
            "head": {"kind": "lm", "tied": True, "bias": _has_bias(tensors)},
        }

    return read


def _has_bias(tensors: Mapping[str, Tensor]) -> bool:
    """Whether the output bias, which these files always have, is not zero."""
    bias = tensors.get("final_logits_bias")
    return bias is not None and bool(torch.count_nonzero(bias))


def _map_marian(settings: EncoderDecoderConfig, max_positions: int) -> WeightMap:
    is_shared = isinstance(settings.target, SharedConfig)
    return maps.marian(bias=settings.head.bias, max_positions=max_positions, shared=is_shared)


def _map_pegasus(settings: EncoderDecoderConfig, max_positions: int) -> WeightMap:
    return maps.pegasus(bias=settings.head.bias, max_positions=max_positions)


def _map_bart(settings: EncoderDecoderConfig, max_positions: int) -> WeightMap:
    sinusoid = stored_sinusoid(attention_stack(settings.encoder).position, max_positions)
    return maps.bart(bias=settings.head.bias, sinusoid=sinusoid)


def _map_mbart(settings: EncoderDecoderConfig, max_positions: int) -> WeightMap:
    sinusoid = stored_sinusoid(attention_stack(settings.encoder).position, max_positions)
    return maps.mbart(bias=settings.head.bias, sinusoid=sinusoid)


# T5.


def _write_t5(settings: EncoderDecoderConfig, max_positions: int) -> Config:
    stack, source = attention_stack(settings.encoder), settings.source
    assert isinstance(source, TokensConfig)  # noqa: S101 - `exportable_to` refuses other inputs
    position: Any = stack.position
    return {
        "is_encoder_decoder": True,
        "vocab_size": source.vocabulary,
        "d_model": settings.d_model,
        "d_kv": stack.attention.dims(settings.d_model)[0],
        "d_ff": stack.feedforward.d_ff,
        "num_layers": stack.layers,
        "num_decoder_layers": settings.decoder.layers,
        "num_heads": stack.attention.heads,
        "feed_forward_proj": "gated-gelu" if stack.feedforward.kind == "gated" else "relu",
        "layer_norm_epsilon": stack.norm.eps,
        "relative_attention_num_buckets": position.buckets,
        "relative_attention_max_distance": position.distance,
        "dropout_rate": stack.dropout.sublayer,
        "n_positions": max_positions,  # declared, not used
        "tie_word_embeddings": False,  # otherwise it scales the input of its output matrix
        "scale_decoder_outputs": False,
    }


def _read_t5(config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:
    is_scaled = config.flag("scale_decoder_outputs", config.config.get("tie_word_embeddings") is not False)
    if is_scaled:
        raise config.error(
            "This T5 scales its output ('tie_word_embeddings' is true, as in version 1.0); Regard does not.",
            "Use a model of version 1.1.",
        )
    feedforwards = {"relu": ("plain", "relu"), "gated-gelu": ("gated", "gelu_tanh")}
    name = config.config.get("feed_forward_proj", "relu")
    if name not in feedforwards:
        raise config.error(f"'feed_forward_proj' is {name!r:.60}: Regard has {' and '.join(feedforwards)}.")
    kind, activation = feedforwards[name]
    attention = {
        "heads": config.integer("num_heads", 8),
        "key_dim": config.integer("d_kv", 64),
        "bias": NO_BIAS,
        "score": {"kind": "scaled_dot", "scale": 1.0},
    }
    rate = config.rate("dropout_rate", 0.1)
    stack = {
        "norm_order": "pre",
        "norm": {"kind": "rms", "eps": config.number("layer_norm_epsilon", 1e-6)},
        "final_norm": True,
        "position": {
            "kind": "relative",
            "buckets": config.integer("relative_attention_num_buckets", 32),
            "distance": config.integer("relative_attention_max_distance", 128),
        },
        "attention": attention,
        "feedforward": {
            "kind": kind,
            "d_ff": config.integer("d_ff", 2048),
            "activation": activation,
            "bias": False,
        },
        "dropout": read_dropout(rate, rate, rate),
    }
    layers = config.integer("num_layers", 6)
    head = tensors.get("lm_head.weight")
    return {
        "family": "encoder_decoder",
        "task": "translate",
        "d_model": config.integer("d_model", 512),
        "source": {"kind": "tokens", "vocabulary": config.integer("vocab_size")},
        "target": {"kind": "shared"},
        "encoder": stack | {"layers": layers},
        "decoder": stack | {"layers": config.integer("num_decoder_layers", layers), "cross": attention},
        "head": {"kind": "lm", "tied": head is None or _is_equal(head, tensors.get("shared.weight"))},
    }


def _is_equal(tensor: Tensor, other: Tensor | None) -> bool:
    return other is not None and tensor.shape == other.shape and torch.equal(tensor, other)


def _map_t5(settings: EncoderDecoderConfig, max_positions: int) -> WeightMap:  # noqa: ARG001 - it has no position table
    return maps.t5(tied=settings.head.tied, gated=attention_stack(settings.encoder).feedforward.kind == "gated")


def _make(name: str, model_type: str, write: Any, read: Any, weight_map: Any) -> Architecture[EncoderDecoderConfig]:
    return Architecture(name, model_type, "AutoModelForSeq2SeqLM", "translation", write, read, weight_map)


ENCODER_DECODERS = (
    _make(
        "MarianMTModel",
        "marian",
        _write_marian,
        _make_bart_reader("post", input_norm=False, is_learned=False),
        _map_marian,
    ),
    _make(
        "PegasusForConditionalGeneration",
        "pegasus",
        _write_pegasus,
        _make_bart_reader("pre", input_norm=False, is_learned=False),
        _map_pegasus,
    ),
    _make(
        "BartForConditionalGeneration",
        "bart",
        _write_bart_family,
        _make_bart_reader("post", input_norm=True, is_learned=True),
        _map_bart,
    ),
    _make(
        "MBartForConditionalGeneration",
        "mbart",
        _write_bart_family,
        _make_bart_reader("pre", input_norm=True, is_learned=True),
        _map_mbart,
    ),
    _make("T5ForConditionalGeneration", "t5", _write_t5, _read_t5, _map_t5),
)
