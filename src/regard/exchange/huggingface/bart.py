"""BART. Its tensor names are shared by `mbart`, `marian`, `pegasus` and `whisper`.

BART and MBart learn positions and normalize the embeddings. Marian and Pegasus have sinusoidal positions. Pegasus,
MBart and Whisper are pre-norm, with a norm after the last layer.
"""

from typing import TYPE_CHECKING

from regard.config.model import EncoderDecoderConfig
from regard.config.parts import attention_stack
from regard.exchange.huggingface.architecture import (
    ConfigKey,
    EncoderDecoderArchitecture,
    FixedValues,
    Keys,
    SettingsTable,
)
from regard.exchange.huggingface.architecture_rules import ALL_BIASES, POSITION_TABLES, ArchitectureRules
from regard.exchange.huggingface.config_reader import ConfigReader
from regard.exchange.weight_map import (
    HEAD_WEIGHT,
    PROJECTIONS,
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    Constant,
    Constants,
    MappingRule,
    Rules,
    Tensors,
    Unsqueeze,
    WeightMap,
    add_prefix,
    make_position_rules,
    make_rules,
)

if TYPE_CHECKING:
    from torch import Tensor

OFFSET = 2  # unused rows before the first learned position of BART and MBart
BART_PROJECTIONS = {**PROJECTIONS, "output": "out_proj"}
LAYER = {
    **add_prefix("attention", "self_attn", BART_PROJECTIONS),
    "attention_residual.norm": "self_attn_layer_norm",
    "feedforward.up": "fc1",
    "feedforward.down": "fc2",
    "feedforward_residual.norm": "final_layer_norm",
}
CROSS = {**add_prefix("cross", "encoder_attn", BART_PROJECTIONS), "cross_residual.norm": "encoder_attn_layer_norm"}
STACKS = {
    **add_prefix("encoder.layers.{i}", "model.encoder.layers.{i}", LAYER),
    **add_prefix("decoder.layers.{i}", "model.decoder.layers.{i}", LAYER | CROSS),
}
INPUT_NORMS, FINAL_NORMS, POSITIONS = (
    {f"{stack}.{ours}": f"model.{stack}.{theirs}" for stack in ("encoder", "decoder")}
    for ours, theirs in (
        ("input_norm", "layernorm_embedding"),
        ("final_norm", "layer_norm"),
        ("position.table", "embed_positions"),
    )
)
ENCODER_EMBEDDING, DECODER_EMBEDDING = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"


def make_keys(
    layers: int | None = None, heads: int | None = None, d_ff: int | None = None, dropout: float = 0.0
) -> Keys:
    """Return the keys of the family, with these defaults."""
    return (
        ConfigKey("d_model", "d_model"),
        ConfigKey("activation_function", "*.feedforward.activation", "gelu", "activation"),
        ConfigKey("dropout", "*.dropout.sublayer *.dropout.embedding", dropout, "rate"),
        ConfigKey("attention_dropout", "*.dropout.attention", 0.0, "rate"),
        ConfigKey("activation_dropout", "*.dropout.feedforward", 0.0, "rate"),
        *(
            ConfigKey(f"{stack}_{name}", f"{stack}.{path}", default)
            for stack in ("encoder", "decoder")
            for name, path, default in (
                ("layers", "layers", layers),
                ("attention_heads", "attention.heads", heads),
                ("ffn_dim", "feedforward.d_ff", d_ff),
            )
        ),
    )


class BartArchitecture(EncoderDecoderArchitecture):
    """`BartForConditionalGeneration`."""

    name, model_type = "BartForConditionalGeneration", "bart"
    rules = ArchitectureRules(
        "post", "layer", True, (f"learned+{OFFSET}", *POSITION_TABLES), ("plain",), (ALL_BIASES,), True, eps=1e-5
    )
    keys = (
        ConfigKey("vocab_size", "source.vocabulary"),
        ConfigKey("scale_embedding", "source.scale", False, "flag"),
        *make_keys(12, 16, 4096, 0.1),
    )
    constants: FixedValues = (("is_encoder_decoder", True), ("tie_word_embeddings", True))

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path; the files always have an output bias, which may be zero."""
        bias = tensors.get("final_logits_bias")
        has_bias = bias is not None and bool(bias.any())
        return super().read_settings(config, tensors) | {"head.bias": has_bias}

    def make_weight_map(self, model: EncoderDecoderConfig, max_positions: int) -> WeightMap:
        """Return the weight map of a model."""
        names = STACKS | (INPUT_NORMS if self.rules.input_norm else {})
        names |= FINAL_NORMS if self.rules.norm_order == "pre" else {}
        position_rules, constants = self.map_positions(model, max_positions)
        embeddings = self.map_embeddings(model)
        rules = (*embeddings, *position_rules, *make_rules(names))
        if model.head.bias:
            return WeightMap(
                self.name,
                (*rules, MappingRule("head.bias", "final_logits_bias", Unsqueeze("theirs"))),
                constants,
            )
        output = embeddings[-1].ours

        def make_zeros(ours: Tensors) -> "Tensor":
            return ours[output].new_zeros(1, ours[output].size(0))

        zeros = Constant("final_logits_bias", "all zeros, because Regard's head has no bias.", make_zeros)
        return WeightMap(self.name, rules, (*constants, zeros))

    def map_embeddings(self, model: EncoderDecoderConfig) -> Rules:  # noqa: ARG002
        """Map the embeddings; the last one is also the output projection."""
        return (
            MappingRule(
                SOURCE_EMBEDDING,
                "model.shared.weight",
                regard_copies=(TARGET_EMBEDDING, HEAD_WEIGHT),
                hf_copies=(ENCODER_EMBEDDING, DECODER_EMBEDDING, "lm_head.weight"),
            ),
        )

    def map_positions(self, model: EncoderDecoderConfig, max_positions: int) -> tuple[Rules, Constants]:
        """Map the position tables."""
        position = attention_stack(model.encoder).position
        return make_position_rules(POSITIONS, position, max_positions, SOURCE_EMBEDDING, OFFSET)


BART = BartArchitecture()
