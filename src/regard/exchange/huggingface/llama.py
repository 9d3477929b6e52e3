"""Llama. `qwen2` and `qwen3` share its tensor names and differ in biases and norms."""

from typing import Any, ClassVar

from regard.config.model import DecoderOnlyConfig
from regard.config.parts import attention_stack
from regard.exchange.huggingface.architecture import ConfigKey, DecoderOnlyArchitecture, Keys, SettingsTable
from regard.exchange.huggingface.architecture_rules import ALL_BIASES, ArchitectureRules
from regard.exchange.huggingface.config_reader import Config, ConfigReader
from regard.exchange.weight_map import PROJECTIONS, Constant, NameMap, Tensors, WeightMap, add_prefix, make_rules

OURS, THEIRS = "decoder.layers.{i}", "model.layers.{i}"
ATTENTION = add_prefix("attention", "self_attn", {**PROJECTIONS, "output": "o_proj"})
FEEDFORWARD = add_prefix("feedforward", "mlp", {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"})
LAYER = {
    **ATTENTION,
    **FEEDFORWARD,
    "attention_residual.norm": "input_layernorm",
    "feedforward_residual.norm": "post_attention_layernorm",
}
ATTENTION_BIAS = ConfigKey(
    "attention_bias", " ".join(f"decoder.attention.bias.{name}" for name in ALL_BIASES.split()), False, "flag"
)
DEFAULT_THETA = 10000.0


class LlamaArchitecture(DecoderOnlyArchitecture):
    """`LlamaForCausalLM`."""

    name, model_type = "LlamaForCausalLM", "llama"
    rules = ArchitectureRules(
        "pre",
        "rms",
        False,
        ("rotary/halves",),
        ("gated",),
        ("none", ALL_BIASES),
        None,
        grouped=True,
        free_key_dim=True,
    )
    family_keys: ClassVar[Keys] = (
        ConfigKey("vocab_size", "tokens.vocabulary"),
        ConfigKey("hidden_size", "d_model", 4096),
        ConfigKey("intermediate_size", "decoder.feedforward.d_ff", 11008),
        ConfigKey("num_hidden_layers", "decoder.layers", 32),
        ConfigKey("num_attention_heads", "decoder.attention.heads", 32),
        ConfigKey("hidden_act", "decoder.feedforward.activation", "silu", "activation"),
        ConfigKey("rms_norm_eps", "decoder.norm.eps", 1e-6, "number"),
        ConfigKey("attention_dropout", "decoder.dropout.attention", 0.0, "rate"),
        ConfigKey("tie_word_embeddings", "head.tied", False, "flag"),
    )
    keys: Keys = (*family_keys, ATTENTION_BIAS, ConfigKey("mlp_bias", "decoder.feedforward.bias", False, "flag"))
    layer: ClassVar[NameMap] = LAYER

    def write_config(self, model: DecoderOnlyConfig, max_positions: int) -> Config:
        """Return the config of a model."""
        stack = attention_stack(model.decoder)
        position: Any = stack.position  # rotary
        return {
            **super().write_config(model, max_positions),
            "num_key_value_heads": stack.attention.groups,
            "head_dim": stack.attention.dims(model.d_model)[0],
            "rope_theta": position.theta,  # before transformers 5, and other engines
            "rope_parameters": {"rope_type": "default", "rope_theta": position.theta},
        }

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        settings = super().read_settings(config, tensors)
        return settings | {
            "decoder.attention.key_value_heads": config.integer(
                "num_key_value_heads", settings["decoder.attention.heads"]
            ),
            "decoder.attention.key_dim": config.optional_integer("head_dim", minimum=1),
            "decoder.position.theta": _read_theta(config),
        }

    def make_weight_map(self, model: DecoderOnlyConfig, max_positions: int) -> WeightMap:  # noqa: ARG002
        """Return the weight map of a model."""
        stack = attention_stack(model.decoder)
        biased = {f"attention.{name}" for name, is_on in stack.attention.bias.model_dump().items() if is_on}
        biased |= set(FEEDFORWARD) if stack.feedforward.bias else set()
        biased_names = {ours: theirs for ours, theirs in self.layer.items() if ours in biased}
        rules = (
            *self.map_tokens(model, "model.embed_tokens.weight"),
            *make_rules(add_prefix(OURS, THEIRS, self.layer) | {"decoder.final_norm": "model.norm"}, "weight"),
            *make_rules(add_prefix(OURS, THEIRS, biased_names), "bias"),
        )
        reason = "the rotary frequencies, which older files contain and theta determines."
        return WeightMap(self.name, rules, (Constant(f"{THEIRS}.self_attn.rotary_emb.inv_freq", reason),))


def _read_theta(config: ConfigReader) -> float:
    """Read the base of the rotary frequencies; scaled frequencies are an error."""
    parameters = config.table("rope_parameters")
    scaling = config.table("rope_scaling")
    for table in (parameters, scaling):
        for key in ("rope_type", "type"):
            table.require(key, "default", "default")
        table.require("partial_rotary_factor", 1.0, 1.0)
    config.require("partial_rotary_factor", 1.0, 1.0)
    return parameters.number("rope_theta", config.number("rope_theta", DEFAULT_THETA), minimum=1e-6)


LLAMA = LlamaArchitecture()
