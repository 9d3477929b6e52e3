"""T5 version 1.1: sublayers are numbered, and the first layer of each stack holds the relative position bias.

`tie_word_embeddings` is false in its config: otherwise it scales its output. The published 1.0 checkpoints set it to
true, so Regard cannot represent them.
"""

from collections.abc import Iterator

from regard.config.model import EncoderDecoderConfig
from regard.config.parts import attention_cross_stack, attention_stack
from regard.exchange.huggingface.architecture import ConfigKey, EncoderDecoderArchitecture, SettingsTable
from regard.exchange.huggingface.architecture_rules import ArchitectureRules
from regard.exchange.huggingface.config_reader import Config, ConfigReader
from regard.exchange.weight_map import (
    HEAD_WEIGHT,
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    Constant,
    MappingRule,
    Tensors,
    Unsqueeze,
    WeightMap,
    add_prefix,
    make_rules,
)

FEEDFORWARDS = {"relu": ("plain", "relu"), "gated-gelu": ("gated", "gelu_tanh")}
PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}
SELF = {
    **add_prefix("attention", "layer.0.SelfAttention", PROJECTIONS),
    "attention_residual.norm": "layer.0.layer_norm",
}
CROSS = {
    **add_prefix("cross", "layer.1.EncDecAttention", PROJECTIONS),
    "cross_residual.norm": "layer.1.layer_norm",
}
FINAL_NORMS = {f"{stack}.final_norm": f"{stack}.final_layer_norm" for stack in ("encoder", "decoder")}
OUTPUT = "lm_head.weight"
RELATIVE_BIAS = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
UNUSED_BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


class T5Architecture(EncoderDecoderArchitecture):
    """`T5ForConditionalGeneration`, whose config holds most settings once for both stacks."""

    name, model_type = "T5ForConditionalGeneration", "t5"
    rules = ArchitectureRules(
        "pre",
        "rms",
        False,
        ("relative",),
        ("plain relu", "gated gelu_tanh"),
        ("none",),
        False,
        free_key_dim=True,
        scale=1.0,
    )
    positions = ("n_positions", 1024)  # declared, not used
    must_tie_head = False
    stored_copies = frozenset({OUTPUT})  # its config says untied
    keys = (
        ConfigKey("vocab_size", "source.vocabulary"),
        ConfigKey("d_model", "d_model", 512),
        ConfigKey("d_kv", "*.attention.key_dim", 64),
        ConfigKey("d_ff", "*.feedforward.d_ff", 2048),
        ConfigKey("num_layers", "*.layers", 6),
        ConfigKey("num_heads", "*.attention.heads", 8),
        ConfigKey("layer_norm_epsilon", "*.norm.eps", 1e-6, "number"),
        ConfigKey("relative_attention_num_buckets", "*.position.buckets", 32),
        ConfigKey("relative_attention_max_distance", "*.position.distance", 128),
        ConfigKey(
            "dropout_rate",
            "*.dropout.sublayer *.dropout.embedding *.dropout.attention *.dropout.feedforward",
            0.1,
            "rate",
        ),
    )

    def find_obstacles(self, model: EncoderDecoderConfig) -> Iterator[str]:
        """Yield the settings of a model that the architecture cannot represent exactly."""
        yield from super().find_obstacles(model)
        encoder, decoder = attention_stack(model.encoder), attention_cross_stack(model.decoder)
        if encoder.attention != decoder.attention or encoder.attention != decoder.cross:
            yield "it requires the same attention settings everywhere"
        if encoder.norm != decoder.norm:
            yield "it requires the same norm in both stacks"
        if encoder.feedforward != decoder.feedforward:
            yield "it requires the same feed-forward settings in both stacks"
        if model.target_tokens.scale:
            yield "source.scale is not supported"
        if model.head.bias:
            yield "head.bias is not supported"

    def write_config(self, model: EncoderDecoderConfig, max_positions: int) -> Config:
        """Return the config of a model."""
        stack = attention_stack(model.encoder)
        return {
            **super().write_config(model, max_positions),
            "is_encoder_decoder": True,
            "d_kv": stack.attention.dims(model.d_model)[0],
            "num_decoder_layers": model.decoder.layers,
            "feed_forward_proj": "gated-gelu" if stack.feedforward.kind == "gated" else "relu",
            "tie_word_embeddings": False,  # otherwise it scales the input of its output matrix
            "scale_decoder_outputs": False,
        }

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        if config.flag("scale_decoder_outputs", config.config.get("tie_word_embeddings") is not False):
            raise config.error(
                "This T5 scales its output ('tie_word_embeddings' is true, as in version 1.0); Regard does not.",
                "Use a model of version 1.1.",
            )
        name = config.config.get("feed_forward_proj", "relu")
        if not isinstance(name, str) or name not in FEEDFORWARDS:
            raise config.error(f"'feed_forward_proj' is {name!r:.60}: Regard has {' and '.join(FEEDFORWARDS)}.")
        settings = super().read_settings(config, tensors)
        for stack in self.stacks:
            settings[f"{stack}.feedforward.kind"], settings[f"{stack}.feedforward.activation"] = FEEDFORWARDS[name]
        head, shared = tensors.get(OUTPUT), tensors.get("shared.weight")
        is_tied = head is None or (shared is not None and shared.shape == head.shape and head.equal(shared))
        layers = config.integer("num_decoder_layers", settings["encoder.layers"])
        return settings | {"decoder.layers": layers, "head.tied": is_tied}

    def make_weight_map(self, model: EncoderDecoderConfig, max_positions: int) -> WeightMap:  # noqa: ARG002
        """Return the weight map of a model."""
        is_tied, is_gated = model.head.tied, attention_stack(model.encoder).feedforward.kind == "gated"
        stacks = ("encoder", "decoder")
        embedding = MappingRule(
            SOURCE_EMBEDDING,
            "shared.weight",
            regard_copies=(TARGET_EMBEDDING, *((HEAD_WEIGHT,) if is_tied else ())),
            hf_copies=(*(f"{stack}.embed_tokens.weight" for stack in stacks), *((OUTPUT,) if is_tied else ())),
        )
        head = () if is_tied else (MappingRule(HEAD_WEIGHT, OUTPUT),)
        relative_bias = (
            MappingRule(f"{stack}.position.tables", f"{stack}.{RELATIVE_BIAS}", Unsqueeze("ours")) for stack in stacks
        )
        names = {
            **add_prefix("encoder.layers.{i}", "encoder.block.{i}", SELF | _name_feedforward(1, is_gated)),
            **add_prefix("decoder.layers.{i}", "decoder.block.{i}", SELF | CROSS | _name_feedforward(2, is_gated)),
            **FINAL_NORMS,
        }
        unused = Constant(UNUSED_BIAS, "found in older files; cross-attention has no position bias.")
        return WeightMap(self.name, (embedding, *head, *relative_bias, *make_rules(names, "weight")), (unused,))

    def breaks_cache(self, model: EncoderDecoderConfig) -> bool:
        """Whether the cache of `transformers` is too small: it has as many layers as the encoder."""
        return model.decoder.layers > model.encoder.layers


def _name_feedforward(number: int, is_gated: bool) -> dict[str, str]:
    matrices = {"gate": "wi_0", "up": "wi_1", "down": "wo"} if is_gated else {"up": "wi", "down": "wo"}
    return {
        **add_prefix("feedforward", f"layer.{number}.DenseReluDense", matrices),
        "feedforward_residual.norm": f"layer.{number}.layer_norm",
    }


T5 = T5Architecture()
