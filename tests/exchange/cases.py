"""Pairs of settings, theirs and ours, for every feature that `exportable_to` claims for Hugging Face."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from regard.exchange.huggingface.architectures import ARCHITECTURES
from regard.exchange.huggingface.bert import HEADS as HUB_HEADS
from regard.exchange.weight_map import WeightMap
from tests.exchange.models import (
    HEADS,
    HIDDEN,
    NO_BIAS,
    PAD,
    POSITIONS,
    VOCABULARY,
    WIDTH,
    Settings,
    make_hugging_face_model,
    make_stack,
    parse_settings,
    write_positions,
)

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "silu": "silu"}  # ours: theirs
LAYOUTS = ("halves", "interleaved")
SPECIAL_IDS = {"pad_token_id": PAD, "bos_token_id": 0, "eos_token_id": 0}  # within the small vocabulary
TRUE_FALSE = (True, False)


@dataclass(frozen=True)
class Case:
    architecture: str
    settings: Settings
    make_theirs: Callable[[], nn.Module]

    @property
    def weight_map(self) -> WeightMap:
        return ARCHITECTURES[self.architecture].make_weight_map(parse_settings(self.settings), POSITIONS)


Makers = dict[str, Callable[..., Case]]


def _make_positions(layout: str | None, offset: int) -> Settings:
    """Make learned positions, or a sinusoid of this layout, which their table stores."""
    if layout is None:
        return {"kind": "learned", "length": POSITIONS, "offset": offset}
    return {"kind": "sinusoidal", "layout": layout, "base": 500.0}


# Encoder-decoders. The two stacks differ in layers, heads and feed-forward.

BART_FAMILY = {
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS // 2,
    "encoder_ffn_dim": HIDDEN,
    "decoder_ffn_dim": HIDDEN + 4,
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    "max_position_embeddings": POSITIONS,
    "decoder_start_token_id": 0,
    "forced_eos_token_id": None,
    **SPECIAL_IDS,
}


def _bart_family(
    architecture: str,
    norm_order: str,
    position: Settings,
    input_norm: bool = False,
    activation: str = "relu",
    scale: bool = False,
    bias: bool = False,
    target_vocabulary: int | None = None,
) -> Case:
    def make_theirs() -> nn.Module:
        settings = BART_FAMILY | {"activation_function": ACTIVATIONS[activation], "scale_embedding": scale}
        if target_vocabulary is not None:
            settings |= {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": target_vocabulary}
        kind = architecture.removesuffix("MTModel").removesuffix("ForConditionalGeneration")
        module = make_hugging_face_model(architecture, f"{kind}Config", settings)
        if bias:  # a buffer, which `randomize_weights` skips
            logits_bias = module.final_logits_bias
            logits_bias += torch.randn(logits_bias.shape, generator=torch.Generator().manual_seed(1))
        for side in (module.model.encoder, module.model.decoder):
            if "base" in position:
                write_positions(side.embed_positions, position)
        return module

    feedforward = {"kind": "plain", "activation": activation}
    encoder = make_stack(
        norm_order, input_norm=input_norm, position=position, feedforward=feedforward | {"d_ff": HIDDEN}
    )
    half = {"heads": HEADS // 2}
    decoder_changes = {
        "layers": 3,
        "attention": half,
        "cross": half,
        "feedforward": feedforward | {"d_ff": HIDDEN + 4},
    }
    tokens = {"kind": "tokens", "scale": scale}
    settings = {
        "family": "encoder_decoder",
        "source": tokens | {"vocabulary": VOCABULARY},
        "target": {"kind": "shared"} if target_vocabulary is None else tokens | {"vocabulary": target_vocabulary},
        "encoder": encoder,
        "decoder": encoder | decoder_changes,
        "head": {"kind": "lm", "tied": True, "bias": bias},
    }
    return Case(architecture, settings, make_theirs)


MARIAN_POSITION = {"kind": "sinusoidal", "layout": "halves"}


def _marian(**changes: Any) -> Case:
    return _bart_family("MarianMTModel", "post", MARIAN_POSITION, **changes)


def _pegasus(**changes: Any) -> Case:
    return _bart_family("PegasusForConditionalGeneration", "pre", MARIAN_POSITION, **changes)


def _bart(layout: str | None = None, **changes: Any) -> Case:
    position = _make_positions(layout, offset=2)
    return _bart_family("BartForConditionalGeneration", "post", position, input_norm=True, **changes)


def _mbart(layout: str | None = None, **changes: Any) -> Case:
    position = _make_positions(layout, offset=2)
    return _bart_family("MBartForConditionalGeneration", "pre", position, input_norm=True, **changes)


def _t5(tied: bool, gated: bool) -> Case:
    def make_theirs() -> nn.Module:
        settings = {
            "vocab_size": VOCABULARY,
            "d_model": WIDTH,
            "d_kv": 6,
            "d_ff": HIDDEN,
            "num_layers": 2,
            "num_decoder_layers": 3,
            "num_heads": HEADS,
            "feed_forward_proj": "gated-gelu" if gated else "relu",
            "layer_norm_epsilon": 1e-5,
            "relative_attention_num_buckets": 8,  # small, so that short rows reach the logarithmic and the last bucket
            "relative_attention_max_distance": 16,
            "tie_word_embeddings": False,
            "decoder_start_token_id": 0,
            **SPECIAL_IDS,
        }
        module = make_hugging_face_model("T5ForConditionalGeneration", "T5Config", settings)
        # `tie_word_embeddings=False` only turns output scaling off: transformers 5 still ties new models, and unties
        # those whose file has a separate output matrix, as the files of version 1.1 do.
        if not tied:
            module.lm_head.weight = nn.Parameter(module.lm_head.weight.detach().clone())
        return module

    attention = {"heads": HEADS, "key_dim": 6, "bias": NO_BIAS, "score": {"kind": "scaled_dot", "scale": 1.0}}
    kind = {"kind": "gated", "activation": "gelu_tanh"} if gated else {"kind": "plain", "activation": "relu"}
    encoder = make_stack(
        "pre",
        norm={"kind": "rms", "eps": 1e-5},
        position={"kind": "relative", "buckets": 8, "distance": 16},
        attention=attention,
        feedforward={**kind, "d_ff": HIDDEN, "bias": False},
    )
    settings = {
        "family": "encoder_decoder",
        "source": {"kind": "tokens", "vocabulary": VOCABULARY},
        "target": {"kind": "shared"},
        "encoder": encoder,
        "decoder": encoder | {"layers": 3, "cross": attention},
        "head": {"kind": "lm", "tied": tied},
    }
    return Case("T5ForConditionalGeneration", settings, make_theirs)


def _iter_encoder_decoders() -> Iterator[tuple[str, Case]]:
    families: Makers = {"marian": _marian, "pegasus": _pegasus, "bart": _bart, "mbart": _mbart}
    for name, make in families.items():
        yield from ((f"{name}-{activation}", make(activation=activation)) for activation in ACTIVATIONS)
        yield f"{name}-scaled-bias", make(bias=True, scale=True)
    for layout in LAYOUTS:
        yield f"bart-{layout}", _bart(layout=layout)
        yield f"mbart-{layout}", _mbart(layout=layout)
    for bias in TRUE_FALSE:
        yield f"marian-separate-{bias=}", _marian(bias=bias, target_vocabulary=VOCABULARY + 4)
    for tied in TRUE_FALSE:
        yield f"t5-plain-{tied=}", _t5(tied, gated=False)
        yield f"t5-gated-{tied=}", _t5(tied, gated=True)


# Decoder-only models.


def _make_decoder_only_settings(decoder: Settings, tied: bool) -> Settings:
    return {
        "family": "decoder_only",
        "tokens": {"kind": "tokens", "vocabulary": VOCABULARY},
        "decoder": decoder,
        "head": {"kind": "lm", "tied": tied},
    }


def _gpt2(activation: str = "gelu_tanh", tied: bool = False, layout: str | None = None) -> Case:
    position = _make_positions(layout, offset=0)

    def make_theirs() -> nn.Module:
        settings = {
            "vocab_size": VOCABULARY,
            "n_embd": WIDTH,
            "n_layer": 2,
            "n_head": HEADS,
            "n_inner": HIDDEN,
            "n_positions": POSITIONS,
            "layer_norm_epsilon": 1e-4,
            "activation_function": ACTIVATIONS[activation],
            "tie_word_embeddings": tied,
            **SPECIAL_IDS,
        }
        module = make_hugging_face_model("GPT2LMHeadModel", "GPT2Config", settings)
        if layout is not None:
            write_positions(module.transformer.wpe, position)
        return module

    feedforward = {"kind": "plain", "d_ff": HIDDEN, "activation": activation}
    decoder = make_stack("pre", norm={"kind": "layer", "eps": 1e-4}, position=position, feedforward=feedforward)
    return Case("GPT2LMHeadModel", _make_decoder_only_settings(decoder, tied), make_theirs)


def _llama_family(
    kind: str,
    bias: Settings,
    activation: str = "silu",
    tied: bool = False,
    key_dim: int | None = None,
    feedforward_bias: bool = False,
    query_key_norm: bool = False,
    **their_settings: Any,
) -> Case:
    def make_theirs() -> nn.Module:
        settings = {
            "vocab_size": VOCABULARY,
            "hidden_size": WIDTH,
            "intermediate_size": HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": HEADS,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-4,
            "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
            "hidden_act": ACTIVATIONS[activation],
            "tie_word_embeddings": tied,
            **({} if key_dim is None else {"head_dim": key_dim}),
            **their_settings,
            **SPECIAL_IDS,
        }
        return make_hugging_face_model(f"{kind}ForCausalLM", f"{kind}Config", settings)

    norm = {"kind": "rms", "eps": 1e-4}
    attention = {"heads": HEADS, "key_value_heads": 2, "key_dim": key_dim, "bias": bias}
    decoder = make_stack(
        "pre",
        norm=norm,
        position={"kind": "rotary", "theta": 5000.0},
        attention=attention | ({"query_key_norm": norm} if query_key_norm else {}),
        feedforward={"kind": "gated", "d_ff": HIDDEN, "activation": activation, "bias": feedforward_bias},
    )
    return Case(f"{kind}ForCausalLM", _make_decoder_only_settings(decoder, tied), make_theirs)


def _llama(bias: bool = False, feedforward_bias: bool = False, **changes: Any) -> Case:
    changes |= {"feedforward_bias": feedforward_bias}
    changes |= {"attention_bias": bias, "mlp_bias": feedforward_bias}  # theirs
    return _llama_family("Llama", {} if bias else NO_BIAS, **changes)


def _qwen2(**changes: Any) -> Case:
    return _llama_family("Qwen2", {"output": False}, **changes)


def _qwen3(bias: bool = False, key_dim: int = 6, **changes: Any) -> Case:
    changes |= {"key_dim": key_dim, "query_key_norm": True, "attention_bias": bias}
    return _llama_family("Qwen3", {} if bias else NO_BIAS, **changes)


def _iter_decoder_only() -> Iterator[tuple[str, Case]]:
    families: Makers = {"gpt2": _gpt2, "llama": _llama, "qwen2": _qwen2, "qwen3": _qwen3}
    for name, make in families.items():
        yield from ((f"{name}-{activation}", make(activation=activation)) for activation in ACTIVATIONS)
        yield f"{name}-tied", make(tied=True)
    for layout in LAYOUTS:
        yield f"gpt2-{layout}", _gpt2(layout=layout)
    yield "llama-bias", _llama(bias=True)
    yield "llama-feedforward-bias", _llama(feedforward_bias=True)
    yield "llama-both-biases", _llama(bias=True, feedforward_bias=True)
    yield "llama-key-dim", _llama(key_dim=6)
    yield "qwen3-bias", _qwen3(bias=True)
    yield "qwen3-no-key-dim", _qwen3(key_dim=WIDTH // HEADS)


# Encoder-only models.

LABELS = ["a", "b", "c"]


def _bert(head: str, activation: str = "gelu", types: int = 2, layout: str | None = None) -> Case:
    position, architecture = _make_positions(layout, offset=0), f"Bert{HUB_HEADS[head].suffix}"

    def make_theirs() -> nn.Module:
        settings = {
            "vocab_size": VOCABULARY,
            "hidden_size": WIDTH,
            "intermediate_size": HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": HEADS,
            "max_position_embeddings": POSITIONS,
            "hidden_act": ACTIVATIONS[activation],
            "type_vocab_size": max(types, 1),
            "num_labels": len(LABELS),
            "pad_token_id": PAD,
        }
        pooling = {"add_pooling_layer": False} if head == "none" else {}
        module = make_hugging_face_model(architecture, "BertConfig", settings, **pooling)
        embeddings = module.base_model.embeddings
        if layout is not None:
            write_positions(embeddings.position_embeddings, position)
        if types == 0:
            embeddings.token_type_embeddings.weight.requires_grad_(False).zero_()
        return module

    feedforward = {"kind": "plain", "d_ff": HIDDEN, "activation": activation}
    norm = {"kind": "layer", "eps": 1e-12}
    encoder = make_stack("post", input_norm=True, norm=norm, position=position, feedforward=feedforward)
    heads: dict[str, tuple[str, Settings]] = {
        "mlm": ("masked_lm", {"activation": activation}),
        "classes": ("text_classification", {"labels": LABELS}),
        "tags": ("tagging", {"labels": LABELS}),
        "none": ("embedding", {}),
    }
    task, head_settings = heads[head]
    settings = {
        "family": "encoder_only",
        "task": task,
        "source": {"kind": "tokens", "vocabulary": VOCABULARY, "types": types},
        "encoder": encoder,
        "head": {"kind": head, **head_settings},
    }
    return Case(architecture, settings, make_theirs)


def _esm(head: str) -> Case:
    architecture = f"Esm{HUB_HEADS[head].suffix}"

    def make_theirs() -> nn.Module:
        settings = {
            "vocab_size": VOCABULARY,
            "hidden_size": WIDTH,
            "intermediate_size": HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": HEADS,
            "max_position_embeddings": POSITIONS,
            "position_embedding_type": "rotary",
            "rope_theta": 5000.0,
            "layer_norm_eps": 1e-4,
            "token_dropout": False,
            "emb_layer_norm_before": False,
            "num_labels": len(LABELS),
            "pad_token_id": PAD,
            "mask_token_id": 2,
        }
        pooling = {"add_pooling_layer": False} if head == "none" else {}
        module = make_hugging_face_model(architecture, "EsmConfig", settings, **pooling)
        for parameter in module.base_model.contact_head.parameters():  # for proteins; frozen as zeros
            parameter.requires_grad_(False).zero_()
        return module

    encoder = make_stack(
        "pre",
        norm={"kind": "layer", "eps": 1e-4},
        position={"kind": "rotary", "theta": 5000.0},
        feedforward={"kind": "plain", "d_ff": HIDDEN, "activation": "gelu"},
    )
    settings = _bert(head, types=0).settings | {"encoder": encoder}
    return Case(architecture, settings, make_theirs)


def _iter_encoder_only() -> Iterator[tuple[str, Case]]:
    for head in HUB_HEADS:
        yield from ((f"bert-{head}-{types=}", _bert(head, types=types)) for types in (0, 1))
        yield from ((f"bert-{head}-{layout}", _bert(head, layout=layout)) for layout in LAYOUTS)
        yield from ((f"bert-{head}-{activation}", _bert(head, activation)) for activation in ACTIVATIONS)
        yield f"esm-{head}", _esm(head)


CASES = dict([*_iter_encoder_decoders(), *_iter_decoder_only(), *_iter_encoder_only()])
