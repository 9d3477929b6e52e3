"""GPT-2, Llama, Qwen2 and Qwen3: the configs of decoder-only models."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from regard.config.model import DecoderOnlyConfig, LMHeadConfig
from regard.config.parts import RotaryConfig, attention_stack
from regard.exchange import decoder_only as maps
from regard.exchange.huggingface.architecture import (
    Architecture,
    SettingsTable,
    count_positions,
    read_dropout,
    stored_sinusoid,
)
from regard.exchange.huggingface.config_reader import ACTIVATIONS, Config, ConfigReader
from regard.exchange.mapping import WeightMap

NO_BIAS = {"query": False, "key": False, "value": False, "output": False}
QKV_BIAS = {"output": False}
DEFAULT_THETA = 10000.0


def is_tied(settings: DecoderOnlyConfig) -> bool:
    """Whether the output matrix is the embedding."""
    return isinstance(settings.head, LMHeadConfig) and settings.head.tied


# GPT-2.


def _write_gpt2(settings: DecoderOnlyConfig, max_positions: int) -> Config:
    stack = attention_stack(settings.decoder)
    return {
        "vocab_size": settings.tokens.vocabulary,
        "n_embd": settings.d_model,
        "n_layer": stack.layers,
        "n_head": stack.attention.heads,
        "n_inner": stack.feedforward.d_ff,
        "n_positions": count_positions(stack.position, max_positions),
        "activation_function": ACTIVATIONS[stack.feedforward.activation],
        "layer_norm_epsilon": stack.norm.eps,
        "embd_pdrop": stack.dropout.embedding,
        "resid_pdrop": stack.dropout.sublayer,
        "attn_pdrop": stack.dropout.attention,
        "tie_word_embeddings": is_tied(settings),
    }


def _read_gpt2(config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:  # noqa: ARG001
    config.require("scale_attn_weights", True, True)
    config.require("scale_attn_by_inverse_layer_idx", False, False)
    config.require("add_cross_attention", False, False)
    width = config.integer("n_embd", 768)
    attention_rate = config.rate("attn_pdrop", 0.1)
    return {
        "family": "decoder_only",
        "d_model": width,
        "tokens": {"kind": "tokens", "vocabulary": config.integer("vocab_size")},
        "decoder": {
            "layers": config.integer("n_layer", 12),
            "norm_order": "pre",
            "norm": {"kind": "layer", "eps": config.number("layer_norm_epsilon", 1e-5)},
            "final_norm": True,
            "position": {"kind": "learned", "length": config.integer("n_positions", 1024)},
            "attention": {"heads": config.integer("n_head", 12)},
            "feedforward": {
                "kind": "plain",
                "d_ff": config.integer("n_inner", 4 * width),
                "activation": config.activation("activation_function", "gelu_new"),
            },
            "dropout": read_dropout(config.rate("resid_pdrop", 0.1), attention_rate),
        },
        "head": {"kind": "lm", "tied": config.flag("tie_word_embeddings", True)},
    }


def _map_gpt2(settings: DecoderOnlyConfig, max_positions: int) -> WeightMap:
    sinusoid = stored_sinusoid(attention_stack(settings.decoder).position, max_positions)
    return maps.gpt2(tied=is_tied(settings), sinusoid=sinusoid)


# The Llama family.


def _write_llama_family(settings: DecoderOnlyConfig, max_positions: int) -> Config:
    stack = attention_stack(settings.decoder)
    attention = stack.attention
    assert isinstance(stack.position, RotaryConfig)  # noqa: S101 - `exportable_to` refuses other positions
    theta = stack.position.theta
    return {
        "vocab_size": settings.tokens.vocabulary,
        "hidden_size": settings.d_model,
        "intermediate_size": stack.feedforward.d_ff,
        "num_hidden_layers": stack.layers,
        "num_attention_heads": attention.heads,
        "num_key_value_heads": attention.groups,
        "head_dim": attention.dims(settings.d_model)[0],
        "hidden_act": ACTIVATIONS[stack.feedforward.activation],
        "max_position_embeddings": max_positions,
        "rms_norm_eps": stack.norm.eps,
        "rope_theta": theta,  # before transformers 5, and other engines
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "attention_dropout": stack.dropout.attention,
        "tie_word_embeddings": is_tied(settings),
    }


def _write_llama(settings: DecoderOnlyConfig, max_positions: int) -> Config:
    return {
        **_write_llama_family(settings, max_positions),
        "attention_bias": attention_stack(settings.decoder).attention.bias.query,
        "mlp_bias": attention_stack(settings.decoder).feedforward.bias,
    }


def _write_qwen2(settings: DecoderOnlyConfig, max_positions: int) -> Config:
    config = _write_llama_family(settings, max_positions)
    config.pop("head_dim")  # always width / heads
    return {**config, "use_sliding_window": False}


def _write_qwen3(settings: DecoderOnlyConfig, max_positions: int) -> Config:
    return {
        **_write_llama_family(settings, max_positions),
        "attention_bias": attention_stack(settings.decoder).attention.bias.query,
        "use_sliding_window": False,
    }


def _read_llama_family(config: ConfigReader, bias: SettingsTable, **attention_changes: Any) -> SettingsTable:
    heads = config.integer("num_attention_heads", 32)
    attention = {
        "heads": heads,
        "key_value_heads": config.integer("num_key_value_heads", heads),
        "key_dim": config.optional_integer("head_dim", minimum=1),
        "bias": bias,
    }
    attention = {key: value for key, value in attention.items() if value is not None}
    return {
        "family": "decoder_only",
        "d_model": config.integer("hidden_size", 4096),
        "tokens": {"kind": "tokens", "vocabulary": config.integer("vocab_size")},
        "decoder": {
            "layers": config.integer("num_hidden_layers", 32),
            "norm_order": "pre",
            "norm": {"kind": "rms", "eps": config.number("rms_norm_eps", 1e-6)},
            "final_norm": True,
            "position": {"kind": "rotary", "layout": "halves", "theta": _read_theta(config)},
            "attention": attention | attention_changes,
            "feedforward": {
                "kind": "gated",
                "d_ff": config.integer("intermediate_size", 11008),
                "activation": config.activation("hidden_act", "silu"),
                "bias": config.flag("mlp_bias", False),
            },
            "dropout": read_dropout(0.0, config.rate("attention_dropout")),
        },
        "head": {"kind": "lm", "tied": config.flag("tie_word_embeddings", False)},
    }


def _read_theta(config: ConfigReader) -> float:
    """Read the base of the rotary frequencies; scaled frequencies are refused."""
    parameters = config.table("rope_parameters")
    scaling = config.table("rope_scaling")
    for table in (parameters, scaling):
        for key in ("rope_type", "type"):
            table.require(key, "default", "default")
        table.require("partial_rotary_factor", 1.0, 1.0)
    config.require("partial_rotary_factor", 1.0, 1.0)
    return parameters.number("rope_theta", config.number("rope_theta", DEFAULT_THETA), minimum=1e-6)


def _read_llama(config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:  # noqa: ARG001
    return _read_llama_family(config, {} if config.flag("attention_bias", False) else NO_BIAS)


def _read_qwen2(config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:  # noqa: ARG001
    config.require("use_sliding_window", False, False)
    return _read_llama_family(config, QKV_BIAS)


def _read_qwen3(config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:  # noqa: ARG001
    config.require("use_sliding_window", False, False)
    bias = {} if config.flag("attention_bias", False) else NO_BIAS
    norm = {"kind": "rms", "eps": config.number("rms_norm_eps", 1e-6)}
    return _read_llama_family(config, bias, query_key_norm=norm, key_dim=config.integer("head_dim", 128))


def _map_llama(settings: DecoderOnlyConfig, max_positions: int) -> WeightMap:  # noqa: ARG001
    stack = attention_stack(settings.decoder)
    bias, feedforward_bias = stack.attention.bias.query, stack.feedforward.bias
    return maps.llama(tied=is_tied(settings), bias=bias, feedforward_bias=feedforward_bias)


def _map_qwen2(settings: DecoderOnlyConfig, max_positions: int) -> WeightMap:  # noqa: ARG001
    return maps.qwen2(tied=is_tied(settings))


def _map_qwen3(settings: DecoderOnlyConfig, max_positions: int) -> WeightMap:  # noqa: ARG001
    return maps.qwen3(tied=is_tied(settings), bias=attention_stack(settings.decoder).attention.bias.query)


Reader = Callable[[ConfigReader, Mapping[str, Tensor]], SettingsTable]


def _make(name: str, model_type: str, write: Any, read: Reader, weight_map: Any) -> Architecture[DecoderOnlyConfig]:
    return Architecture(name, model_type, "AutoModelForCausalLM", "text-generation", write, read, weight_map)


DECODER_ONLY_MODELS = (
    _make("GPT2LMHeadModel", "gpt2", _write_gpt2, _read_gpt2, _map_gpt2),
    _make("LlamaForCausalLM", "llama", _write_llama, _read_llama, _map_llama),
    _make("Qwen2ForCausalLM", "qwen2", _write_qwen2, _read_qwen2, _map_qwen2),
    _make("Qwen3ForCausalLM", "qwen3", _write_qwen3, _read_qwen3, _map_qwen3),
)
