"""BERT and ESM with each of their heads: the configs of encoder-only models."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.config.inputs import TokensConfig
from regard.config.model import ClassificationHeadConfig, EncoderOnlyConfig, TaggingHeadConfig
from regard.config.parts import RotaryConfig, attention_stack
from regard.exchange import encoder_only as maps
from regard.exchange.encoder_only import Head
from regard.exchange.huggingface.architecture import (
    Architecture,
    SettingsTable,
    count_positions,
    read_dropout,
    stored_sinusoid,
)
from regard.exchange.huggingface.config_reader import ACTIVATIONS, Config, ConfigReader
from regard.exchange.mapping import WeightMap

TASKS: dict[Head, str] = {"mlm": "masked_lm", "classes": "classify", "tags": "tag", "none": "embed"}
AUTO_CLASSES: dict[Head, tuple[str, str]] = {  # the Auto* class and the task on the hub
    "mlm": ("AutoModelForMaskedLM", "fill-mask"),
    "classes": ("AutoModelForSequenceClassification", "text-classification"),
    "tags": ("AutoModelForTokenClassification", "token-classification"),
    "none": ("AutoModel", "feature-extraction"),
}
ESM_BASE = 10000.0  # theta of rotary positions
MAX_LABELS = 100_000


def _write_stack(settings: EncoderOnlyConfig, max_positions: int) -> Config:
    stack, source = attention_stack(settings.encoder), settings.source
    assert isinstance(source, TokensConfig)  # noqa: S101 - `exportable_to` refuses other inputs
    config: Config = {
        "vocab_size": source.vocabulary,
        "hidden_size": settings.d_model,
        "num_hidden_layers": stack.layers,
        "num_attention_heads": stack.attention.heads,
        "intermediate_size": stack.feedforward.d_ff,
        "max_position_embeddings": count_positions(stack.position, max_positions),
        "layer_norm_eps": stack.norm.eps,
        "hidden_dropout_prob": stack.dropout.sublayer,
        "attention_probs_dropout_prob": stack.dropout.attention,
        "tie_word_embeddings": True,
    }
    if isinstance(settings.head, ClassificationHeadConfig | TaggingHeadConfig):
        config["id2label"] = {str(number): label for number, label in enumerate(settings.head.labels)}
        config["label2id"] = {label: number for number, label in enumerate(settings.head.labels)}
    return config


def _write_bert(settings: EncoderOnlyConfig, max_positions: int) -> Config:
    source: Any = settings.source
    return {
        **_write_stack(settings, max_positions),
        "hidden_act": ACTIVATIONS[attention_stack(settings.encoder).feedforward.activation],
        "type_vocab_size": max(1, source.types),
        "position_embedding_type": "absolute",
    }


def _write_esm(settings: EncoderOnlyConfig, max_positions: int) -> Config:
    position = attention_stack(settings.encoder).position
    assert isinstance(position, RotaryConfig)  # noqa: S101 - `exportable_to` refuses other positions
    return {
        **_write_stack(settings, max_positions),
        "position_embedding_type": "rotary",
        "rope_theta": position.theta,
        "emb_layer_norm_before": False,
        "token_dropout": False,
    }


def _read_stack(config: ConfigReader) -> SettingsTable:
    config.require("is_decoder", False, False)
    config.require("add_cross_attention", False, False)
    config.require("tie_word_embeddings", True, True)
    return {
        "layers": config.integer("num_hidden_layers", 12),
        "norm": {"kind": "layer", "eps": config.number("layer_norm_eps", 1e-12)},
        "attention": {"heads": config.integer("num_attention_heads", 12)},
        "feedforward": {
            "kind": "plain",
            "d_ff": config.integer("intermediate_size", 3072),
            "activation": config.activation("hidden_act", "gelu"),
        },
        "dropout": read_dropout(
            config.rate("hidden_dropout_prob", 0.1), config.rate("attention_probs_dropout_prob", 0.1)
        ),
    }


def _read_head(head: Head, config: ConfigReader, activation: str) -> SettingsTable:
    if head == "mlm":
        return {"kind": head, "activation": activation}
    if head == "none":
        return {"kind": head}
    return {"kind": head, "labels": _read_labels(config)}


def _read_labels(config: ConfigReader) -> list[str]:
    """Read `id2label`; without it the labels are LABEL_0, LABEL_1, ..."""
    if config.config.get("problem_type") is not None:
        config.require("problem_type", "single_label_classification", None)
    table = config.table("id2label").config
    if not table:
        count = config.integer("num_labels", 2, minimum=2)
        if count > MAX_LABELS:
            raise config.error(f"'num_labels' is {count:,}; the limit is {MAX_LABELS:,}.")
        return [f"LABEL_{number}" for number in range(count)]
    labels = [table.get(str(number)) for number in range(len(table))]
    if not all(isinstance(label, str) for label in labels):
        raise config.error("'id2label' must map 0, 1, 2, ... to the names of the labels.")
    return [str(label) for label in labels]


def _read_bert(head: Head, config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:  # noqa: ARG001
    config.require("position_embedding_type", "absolute", "absolute")
    stack = _read_stack(config)
    position = {"kind": "learned", "length": config.integer("max_position_embeddings", 512)}
    return {
        "family": "encoder_only",
        "task": TASKS[head],
        "d_model": config.integer("hidden_size", 768),
        "source": {
            "kind": "tokens",
            "vocabulary": config.integer("vocab_size"),
            "types": config.integer("type_vocab_size", 2),
        },
        "encoder": stack | {"norm_order": "post", "input_norm": True, "final_norm": False, "position": position},
        "head": _read_head(head, config, stack["feedforward"]["activation"]),
    }


def _read_esm(head: Head, config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:  # noqa: ARG001
    config.require("position_embedding_type", "rotary", "absolute")
    config.require("emb_layer_norm_before", False, False)
    config.require("token_dropout", False, False)
    config.require("is_folding_model", False, False)
    theta = config.number("rope_theta", ESM_BASE, minimum=1e-6)
    stack = _read_stack(config) | {
        "norm_order": "pre",
        "final_norm": True,
        "position": {"kind": "rotary", "layout": "halves", "theta": theta},
    }
    stack["feedforward"]["activation"] = "gelu"  # the only one, whatever `hidden_act` says
    return {
        "family": "encoder_only",
        "task": TASKS[head],
        "d_model": config.integer("hidden_size", 768),
        "source": {"kind": "tokens", "vocabulary": config.integer("vocab_size")},
        "encoder": stack,
        "head": _read_head(head, config, "gelu"),
    }


def _map_bert(head: Head, settings: EncoderOnlyConfig, max_positions: int) -> WeightMap:
    source: Any = settings.source
    sinusoid = stored_sinusoid(attention_stack(settings.encoder).position, max_positions)
    return maps.bert(head, has_token_types=source.types > 0, sinusoid=sinusoid)


def _map_esm(head: Head, settings: EncoderOnlyConfig, max_positions: int) -> WeightMap:  # noqa: ARG001
    stack = attention_stack(settings.encoder)
    position = stack.position
    assert isinstance(position, RotaryConfig)  # noqa: S101 - `exportable_to` refuses other positions
    return maps.esm(
        head,
        attentions=stack.layers * stack.attention.heads,
        key_dim=stack.attention.dims(settings.d_model)[0],
        theta=position.theta,
    )


def _make_bert(head: Head) -> Architecture[EncoderOnlyConfig]:
    def write(settings: EncoderOnlyConfig, max_positions: int) -> Config:
        return _write_bert(settings, max_positions)

    def read(config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:
        return _read_bert(head, config, tensors)

    def weight_map(settings: EncoderOnlyConfig, max_positions: int) -> WeightMap:
        return _map_bert(head, settings, max_positions)

    return Architecture(maps.BERT_ARCHITECTURES[head], "bert", *AUTO_CLASSES[head], write, read, weight_map)


def _make_esm(head: Head) -> Architecture[EncoderOnlyConfig]:
    def write(settings: EncoderOnlyConfig, max_positions: int) -> Config:
        return _write_esm(settings, max_positions)

    def read(config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:
        return _read_esm(head, config, tensors)

    def weight_map(settings: EncoderOnlyConfig, max_positions: int) -> WeightMap:
        return _map_esm(head, settings, max_positions)

    return Architecture(maps.ESM_ARCHITECTURES[head], "esm", *AUTO_CLASSES[head], write, read, weight_map)


ENCODER_ONLY_MODELS = tuple(make(head) for make in (_make_bert, _make_esm) for head in TASKS)
