"""Qwen3: a Llama with norms on queries and keys."""

from dataclasses import replace

from regard.exchange.huggingface.architecture import SettingsTable
from regard.exchange.huggingface.config_reader import ConfigReader
from regard.exchange.huggingface.llama import ATTENTION_BIAS, LAYER, LlamaArchitecture
from regard.exchange.weight_map import Tensors, add_prefix


class Qwen3Architecture(LlamaArchitecture):
    """`Qwen3ForCausalLM`."""

    name, model_type = "Qwen3ForCausalLM", "qwen3"
    rules = replace(LlamaArchitecture.rules, feedforward_bias=False, query_key_norm=True)
    keys = (*LlamaArchitecture.family_keys, ATTENTION_BIAS)
    constants = (("use_sliding_window", False),)
    layer = LAYER | add_prefix("attention", "self_attn", {"query_norm": "q_norm", "key_norm": "k_norm"})

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        settings = super().read_settings(config, tensors)
        return settings | {
            "decoder.attention.key_dim": config.integer("head_dim", 128),
            "decoder.attention.query_key_norm.eps": settings["decoder.norm.eps"],
        }


QWEN3 = Qwen3Architecture()
