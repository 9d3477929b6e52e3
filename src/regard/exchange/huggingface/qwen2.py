"""Qwen2: a Llama with biases on queries, keys and values, and heads of d_model / heads."""

from dataclasses import replace

from regard.config.model import DecoderOnlyConfig
from regard.exchange.huggingface.config_reader import Config
from regard.exchange.huggingface.llama import LlamaArchitecture


class Qwen2Architecture(LlamaArchitecture):
    """`Qwen2ForCausalLM`."""

    name, model_type = "Qwen2ForCausalLM", "qwen2"
    rules = replace(LlamaArchitecture.rules, bias=("query key value",), feedforward_bias=False, free_key_dim=False)
    keys = LlamaArchitecture.family_keys
    constants = (("use_sliding_window", False),)
    has_own_tokenizer = True

    def write_config(self, model: DecoderOnlyConfig, max_positions: int) -> Config:
        """Return the config of a model."""
        config = super().write_config(model, max_positions)
        return {name: value for name, value in config.items() if name != "head_dim"}  # always d_model / heads


QWEN2 = Qwen2Architecture()
