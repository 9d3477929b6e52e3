"""GPT-2: its Conv1D stores transposed matrices and packs query, key and value."""

from regard.config.model import DecoderOnlyConfig
from regard.config.parts import attention_stack
from regard.exchange.huggingface.architecture import ConfigKey, DecoderOnlyArchitecture, SettingsTable
from regard.exchange.huggingface.architecture_rules import ALL_BIASES, POSITION_TABLES, ArchitectureRules
from regard.exchange.huggingface.config_reader import Config, ConfigReader
from regard.exchange.weight_map import (
    TOKEN_EMBEDDING,
    Constant,
    Tensors,
    Transpose,
    WeightMap,
    add_prefix,
    make_position_rules,
    make_qkv_rules,
    make_rules,
)

OURS, THEIRS = "decoder.layers.{i}", "transformer.h.{i}"
NORMS = {
    **add_prefix(OURS, THEIRS, {"attention_residual.norm": "ln_1", "feedforward_residual.norm": "ln_2"}),
    "decoder.final_norm": "transformer.ln_f",
}
MATRICES = add_prefix(
    OURS,
    THEIRS,
    {"attention.output": "attn.c_proj", "feedforward.up": "mlp.c_fc", "feedforward.down": "mlp.c_proj"},
)


class GPT2Architecture(DecoderOnlyArchitecture):
    """`GPT2LMHeadModel`."""

    name, model_type = "GPT2LMHeadModel", "gpt2"
    rules = ArchitectureRules("pre", "layer", False, ("learned+0", *POSITION_TABLES), ("plain",), (ALL_BIASES,), True)
    positions = ("n_positions", 1024)
    keys = (
        ConfigKey("vocab_size", "tokens.vocabulary"),
        ConfigKey("n_embd", "d_model", 768),
        ConfigKey("n_layer", "decoder.layers", 12),
        ConfigKey("n_head", "decoder.attention.heads", 12),
        ConfigKey("activation_function", "decoder.feedforward.activation", "gelu_new", "activation"),
        ConfigKey("layer_norm_epsilon", "decoder.norm.eps", 1e-5, "number"),
        ConfigKey("embd_pdrop", "decoder.dropout.embedding", 0.1, "rate"),
        ConfigKey("resid_pdrop", "decoder.dropout.sublayer", 0.1, "rate"),
        ConfigKey("attn_pdrop", "decoder.dropout.attention", 0.1, "rate"),
        ConfigKey("tie_word_embeddings", "head.tied", True, "flag"),
    )
    required = (
        ("scale_attn_weights", True),
        ("scale_attn_by_inverse_layer_idx", False),
        ("add_cross_attention", False),
    )

    def write_config(self, model: DecoderOnlyConfig, max_positions: int) -> Config:
        """Return the config of a model."""
        return {
            **super().write_config(model, max_positions),
            "n_inner": attention_stack(model.decoder).feedforward.d_ff,
        }

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        settings = super().read_settings(config, tensors)
        return settings | {"decoder.feedforward.d_ff": config.integer("n_inner", 4 * settings["d_model"])}

    def make_weight_map(self, model: DecoderOnlyConfig, max_positions: int) -> WeightMap:
        """Return the weight map of a model."""
        position_rules, position_constants = make_position_rules(
            {"decoder.position.table": "transformer.wpe"},
            attention_stack(model.decoder).position,
            max_positions,
            TOKEN_EMBEDDING,
        )
        rules = (
            *self.map_tokens(model, "transformer.wte.weight"),
            *position_rules,
            *make_qkv_rules(f"{OURS}.attention", f"{THEIRS}.attn.c_attn.", transposed=True),
            *make_rules(MATRICES, "weight", transform=Transpose()),
            *make_rules(MATRICES, "bias"),
            *make_rules(NORMS),
        )
        reason = "a causal mask, which older files contain."
        masks = (Constant(f"{THEIRS}.attn.{name}", reason) for name in ("bias", "masked_bias"))
        return WeightMap(self.name, rules, (*position_constants, *masks))


GPT2 = GPT2Architecture()
