"""Weight maps for encoder-only models of Hugging Face: BERT and ESM, one architecture for each head."""

from dataclasses import replace
from math import inf
from typing import Literal

import torch
from torch import Tensor

from regard.exchange.mapping import (
    ROUNDING_TOLERANCE,
    SOURCE_EMBEDDING,
    WEIGHT,
    WEIGHT_AND_BIAS,
    Constant,
    Constants,
    MappingRule,
    Rules,
    Sinusoid,
    Tensors,
    WeightMap,
    add_prefix,
    make_position_rules,
    make_rules,
)

Head = Literal["mlm", "classes", "tags", "none"]  # the kinds of heads in the settings

BERT_LAYER = {
    **add_prefix("attention", "attention.self", {name: name for name in ("query", "key", "value")}),
    "attention.output": "attention.output.dense",
    "attention_residual.norm": "attention.output.LayerNorm",
    "feedforward.up": "intermediate.dense",
    "feedforward.down": "output.dense",
    "feedforward_residual.norm": "output.LayerNorm",
}
BERT_STACK = {
    "encoder.input_norm": "embeddings.LayerNorm",
    **add_prefix("encoder.layers.{i}", "encoder.layer.{i}", BERT_LAYER),
}
BERT_ARCHITECTURES: dict[Head, str] = {
    "mlm": "BertForMaskedLM",
    "classes": "BertForSequenceClassification",
    "tags": "BertForTokenClassification",
    "none": "BertModel",
}
BERT_HEADS: dict[Head, dict[str, str]] = {
    "mlm": {
        "head.dense": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
    },
    "classes": {"head.dense": "bert.pooler.dense", "head.classes": "classifier"},
    "tags": {"head.tags": "classifier"},
    "none": {},
}


def bert(head: Head, *, has_token_types: bool = True, sinusoid: Sinusoid | None = None) -> WeightMap:
    """Map the BERT architecture with this head.

    Args:
        head: `mlm` must have tied embeddings; `none` maps a `BertModel` with `add_pooling_layer=False`.
        has_token_types: Whether our model has token types; if not, theirs has `type_vocab_size = 1`.
        sinusoid: Our positions if they are sinusoidal; None if they are learned.
    """
    prefix = "" if head == "none" else "bert."
    position_rules, position_constants = make_position_rules(
        {"encoder.position.table": f"{prefix}embeddings.position_embeddings"}, sinusoid, SOURCE_EMBEDDING
    )
    type_rules, type_constants = _make_type_rules(f"{prefix}embeddings.token_type_embeddings", has_token_types)
    stack = {our: f"{prefix}{their}" for our, their in BERT_STACK.items()}
    return WeightMap(
        BERT_ARCHITECTURES[head],
        (
            *_make_embedding_rules(head, f"{prefix}embeddings.word_embeddings.weight"),
            *type_rules,
            *position_rules,
            *make_rules(stack | BERT_HEADS[head], WEIGHT_AND_BIAS),
        ),
        (
            *type_constants,
            *position_constants,
            Constant(f"{prefix}embeddings.position_ids", "0, 1, 2, ..., which older files contain."),
            *_make_next_sentence_constants(head, prefix),
        ),
    )


def _make_embedding_rules(head: Head, theirs: str) -> Rules:
    """Map the embedding, which is also the output projection of the MLM head."""
    if head != "mlm":
        return (MappingRule(SOURCE_EMBEDDING, theirs),)
    return (
        MappingRule(
            SOURCE_EMBEDDING,
            theirs,
            regard_copies=("head.lm_head.projection.weight",),
            hf_copies=("cls.predictions.decoder.weight",),
        ),
        MappingRule("head.lm_head.bias", "cls.predictions.bias", hf_copies=("cls.predictions.decoder.bias",)),
    )


def _make_type_rules(theirs: str, has_token_types: bool) -> tuple[Rules, Constants]:
    """Map the token type embedding, or a single type of zeros."""
    if has_token_types:
        return make_rules({"source.types": theirs}, WEIGHT), ()

    def make_zeros(ours: Tensors) -> Tensor:
        return ours[SOURCE_EMBEDDING].new_zeros(1, ours[SOURCE_EMBEDDING].size(1))

    return (), (Constant(f"{theirs}.weight", "all zeros, because our model has no token types.", make_zeros),)


def _make_next_sentence_constants(head: Head, prefix: str) -> Constants:
    """List the tensors of next-sentence pre-training; the classification head keeps the pooler."""
    modules = (*(() if head == "classes" else (f"{prefix}pooler.dense",)), "cls.seq_relationship")
    reason = "part of the next-sentence task, which this head does not use."
    return tuple(Constant(f"{module}.{field}", reason) for module in modules for field in WEIGHT_AND_BIAS)


# ESM: a BERT with pre-norm, rotary positions and no token types.

ESM_LAYER = {
    **BERT_LAYER,
    "attention_residual.norm": "attention.LayerNorm",
    "feedforward_residual.norm": "LayerNorm",
}
ESM_STACK = {
    **add_prefix("encoder.layers.{i}", "encoder.layer.{i}", ESM_LAYER),
    "encoder.final_norm": "encoder.emb_layer_norm_after",
}
ESM_ARCHITECTURES: dict[Head, str] = {head: name.replace("Bert", "Esm") for head, name in BERT_ARCHITECTURES.items()}
ESM_HEADS: dict[Head, dict[str, str]] = {
    "mlm": {"head.dense": "lm_head.dense", "head.norm": "lm_head.layer_norm"},
    "classes": {"head.dense": "classifier.dense", "head.classes": "classifier.out_proj"},
    "tags": {"head.tags": "classifier"},
    "none": {},
}


def esm(head: Head, *, attentions: int, key_dim: int, theta: float) -> WeightMap:
    """Map the ESM architecture with this head.

    Args:
        head: `mlm` must have tied embeddings; `none` maps an `EsmModel` with `add_pooling_layer=False`.
        attentions: Number of attention heads in all layers: the width of a head for proteins that it always has.
        key_dim: d_k of a head.
        theta: Base of the rotary frequencies.
    """
    prefix = "" if head == "none" else "esm."
    embedding = MappingRule(SOURCE_EMBEDDING, f"{prefix}embeddings.word_embeddings.weight")
    if head == "mlm":
        embedding = replace(
            embedding, regard_copies=("head.lm_head.projection.weight",), hf_copies=("lm_head.decoder.weight",)
        )
    bias = (MappingRule("head.lm_head.bias", "lm_head.bias"),) if head == "mlm" else ()
    stack = {our: f"{prefix}{their}" for our, their in ESM_STACK.items()}

    def make_frequencies(ours: Tensors) -> Tensor:
        exponents = torch.arange(0, key_dim, 2, dtype=torch.float32) / key_dim
        return (1.0 / theta**exponents).to(ours[SOURCE_EMBEDDING].dtype)

    def make_contacts(ours: Tensors) -> Tensor:
        return ours[SOURCE_EMBEDDING].new_zeros(1, attentions)

    def make_contact_bias(ours: Tensors) -> Tensor:
        return ours[SOURCE_EMBEDDING].new_zeros(1)

    contact_reason, pooler_reason = "part of a head for proteins, which Regard does not have.", "a pooler, not used."
    rotary_reason = "the rotary frequencies; they follow from theta."
    contacts = f"{prefix}contact_head.regression"
    return WeightMap(
        ESM_ARCHITECTURES[head],
        (embedding, *bias, *make_rules(stack | ESM_HEADS[head], WEIGHT_AND_BIAS)),
        (
            Constant(f"{prefix}rotary_embeddings.inv_freq", rotary_reason, make_frequencies, ROUNDING_TOLERANCE),
            *(  # older files have one for each layer, and transformers 5 writes this name with a star
                Constant(f"{prefix}encoder.layer.{layer}.attention.self.rotary_embeddings.inv_freq", rotary_reason)
                for layer in ("{i}", "*")
            ),
            Constant(f"{contacts}.weight", contact_reason, make_contacts, inf),
            Constant(f"{contacts}.bias", contact_reason, make_contact_bias, inf),
            Constant(f"{prefix}embeddings.position_ids", "0, 1, 2, ..., which older files contain."),
            Constant(f"{prefix}embeddings.position_embeddings.weight", "not used by rotary positions."),
            *(Constant(f"{prefix}pooler.dense.{field}", pooler_reason) for field in WEIGHT_AND_BIAS),
        ),
    )
