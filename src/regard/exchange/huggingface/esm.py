"""ESM with each of its heads: a BERT with pre-norm, rotary positions and no token types."""

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from regard.config.inputs import TokensConfig
from regard.config.model import EncoderOnlyConfig
from regard.config.parts import attention_stack
from regard.exchange.huggingface.architecture import SettingsTable
from regard.exchange.huggingface.architecture_rules import ALL_BIASES, ArchitectureRules
from regard.exchange.huggingface.bert import HEADS, LAYER, EncoderOnlyArchitecture
from regard.exchange.huggingface.config_reader import Config, ConfigReader
from regard.exchange.weight_map import (
    ROUNDING_TOLERANCE,
    SOURCE_EMBEDDING,
    WEIGHT_AND_BIAS,
    Constant,
    MappingRule,
    NameMap,
    Tensors,
    WeightMap,
    add_prefix,
)

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_THETA = 10000.0
TYPE_EMBEDDING = "source.types.weight"
LAYER_NORMS = {"attention_residual.norm": "attention.LayerNorm", "feedforward_residual.norm": "LayerNorm"}
STACK = {
    **add_prefix("encoder.layers.{i}", "encoder.layer.{i}", LAYER | LAYER_NORMS),
    "encoder.final_norm": "encoder.emb_layer_norm_after",
}
HEAD_MODULES: dict[str, NameMap] = {
    "mlm": {"head.dense": "lm_head.dense", "head.norm": "lm_head.layer_norm"},
    "classes": {"head.dense": "classifier.dense", "head.classes": "classifier.out_proj"},
    "tags": {"head.tags": "classifier"},
    "none": {},
}


class EsmArchitecture(EncoderOnlyArchitecture):
    """`EsmForMaskedLM` and the other classes; an `EsmModel` has `add_pooling_layer=False`."""

    class_prefix, model_type = "Esm", "esm"
    rules = ArchitectureRules("pre", "layer", False, ("rotary/halves",), ("plain gelu",), (ALL_BIASES,), True)
    constants = (
        *EncoderOnlyArchitecture.constants,
        ("position_embedding_type", "rotary"),
        ("emb_layer_norm_before", False),
        ("token_dropout", False),
    )
    required = (*EncoderOnlyArchitecture.required, ("is_folding_model", False))
    special_ids = ("mask",)
    stack_names, head_names = STACK, HEAD_MODULES

    def find_obstacles(self, model: EncoderOnlyConfig) -> Iterator[str]:
        """Yield the settings of a model that the architecture cannot represent exactly."""
        yield from super().find_obstacles(model)
        if self.head == "mlm" and isinstance(model.source, TokensConfig) and model.source.types:
            yield "source.types is not 0 (the export adds the first type to tokens, but here they are the output too)"

    def write_config(self, model: EncoderOnlyConfig, max_positions: int) -> Config:
        """Return the config of a model."""
        position: Any = attention_stack(model.encoder).position  # rotary
        return super().write_config(model, max_positions) | {"rope_theta": position.theta}

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        config.require("position_embedding_type", "rotary", "absolute")  # absolute if it is missing
        theta = config.number("rope_theta", DEFAULT_THETA, minimum=1e-6)
        return super().read_settings(config, tensors) | {"encoder.position.theta": theta}

    def prepare_weights(self, weights: Tensors) -> Tensors:
        """Add the first token type to the token embeddings: all tokens have it except in the second text of a pair."""
        if TYPE_EMBEDDING not in weights:
            return weights
        tokens = {SOURCE_EMBEDDING: weights[SOURCE_EMBEDDING] + weights[TYPE_EMBEDDING][0]}
        return {name: tensor for name, tensor in weights.items() if name != TYPE_EMBEDDING} | tokens

    def list_notes(self, model: EncoderOnlyConfig) -> Iterator[str]:
        """Yield what differs from the model in Regard."""
        if isinstance(model.source, TokensConfig) and model.source.types:
            yield "The first token type is added to the token embeddings; the second text's token type is dropped."

    def make_weight_map(self, model: EncoderOnlyConfig, max_positions: int) -> WeightMap:  # noqa: ARG002
        """Return the weight map of a model."""
        stack, prefix = attention_stack(model.encoder), self.prefix
        position: Any = stack.position  # rotary
        key_dim = stack.attention.dims(model.d_model)[0]
        rules = (self.map_embedding("lm_head.decoder.weight"), *self.map_modules())
        if self.head == "mlm":
            rules += (MappingRule("head.lm_head.bias", "lm_head.bias"),)

        def make_frequencies(ours: Tensors) -> "Tensor":
            import torch  # only when needed

            exponents = torch.arange(0, key_dim, 2, dtype=torch.float32) / key_dim
            return (1.0 / position.theta**exponents).to(ours[SOURCE_EMBEDDING].dtype)

        def make_contacts(ours: Tensors) -> "Tensor":
            return ours[SOURCE_EMBEDDING].new_zeros(1, stack.layers * stack.attention.heads)

        def make_contact_bias(ours: Tensors) -> "Tensor":
            return ours[SOURCE_EMBEDDING].new_zeros(1)

        reason = "the rotary frequencies, which theta determines."
        contacts = f"{prefix}contact_head.regression"
        contact_reason = "part of a head for proteins, which Regard does not have."
        constants = (
            Constant(f"{prefix}rotary_embeddings.inv_freq", reason, make_frequencies, ROUNDING_TOLERANCE),
            *(  # older files have one for each layer, and transformers 5 writes this name with a star
                Constant(f"{prefix}encoder.layer.{layer}.attention.self.rotary_embeddings.inv_freq", reason)
                for layer in ("{i}", "*")
            ),
            Constant(f"{contacts}.weight", contact_reason, make_contacts, inf),
            Constant(f"{contacts}.bias", contact_reason, make_contact_bias, inf),
            Constant(f"{prefix}embeddings.position_ids", "0, 1, 2, ..., which older files contain."),
            Constant(f"{prefix}embeddings.position_embeddings.weight", "not used by rotary positions."),
            *(Constant(f"{prefix}pooler.dense.{field}", "a pooler, not used.") for field in WEIGHT_AND_BIAS),
        )
        return WeightMap(self.name, rules, constants)


ESMS = tuple(EsmArchitecture(head) for head in HEADS)
