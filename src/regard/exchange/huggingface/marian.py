"""Marian: a BART with sinusoidal positions, no embedding norms, and shared or separate embeddings."""

from dataclasses import replace
from typing import TYPE_CHECKING

from regard.config.inputs import SharedConfig
from regard.config.model import EncoderDecoderConfig
from regard.exchange.huggingface.architecture import SettingsTable
from regard.exchange.huggingface.bart import DECODER_EMBEDDING, ENCODER_EMBEDDING, POSITIONS, BartArchitecture
from regard.exchange.huggingface.config_reader import Config, ConfigReader
from regard.exchange.weight_map import (
    HEAD_WEIGHT,
    ROUNDING_TOLERANCE,
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    Constant,
    Constants,
    MappingRule,
    Rules,
    Tensors,
)

if TYPE_CHECKING:
    from torch import Tensor

SEPARATE_EMBEDDINGS = (
    MappingRule(SOURCE_EMBEDDING, ENCODER_EMBEDDING),
    MappingRule(TARGET_EMBEDDING, DECODER_EMBEDDING, regard_copies=(HEAD_WEIGHT,), hf_copies=("lm_head.weight",)),
)


class SinusoidalBartArchitecture(BartArchitecture):
    """A BART that stores sinusoids where BART has learned positions."""

    rules = replace(BartArchitecture.rules, input_norm=False, positions=("sinusoidal/halves",))

    def map_positions(self, model: EncoderDecoderConfig, max_positions: int) -> tuple[Rules, Constants]:  # noqa: ARG002
        """Compute the sinusoid as Marian and Pegasus do: in double precision, then rounded."""

        def make_table(ours: Tensors) -> "Tensor":
            import torch  # only when needed

            width = ours[SOURCE_EMBEDDING].size(1)
            exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
            angles = torch.arange(max_positions, dtype=torch.float64)[:, None] / 10000.0**exponents  # (positions, D/2)
            return torch.cat((angles.sin(), angles.cos()), dim=1).to(ours[SOURCE_EMBEDDING])

        reason = "sinusoidal positions, sines in the first half, which Regard computes."
        return (), tuple(
            Constant(f"{theirs}.weight", reason, make_table, ROUNDING_TOLERANCE) for theirs in POSITIONS.values()
        )


class MarianArchitecture(SinusoidalBartArchitecture):
    """`MarianMTModel`."""

    name, model_type = "MarianMTModel", "marian"
    constants = (("is_encoder_decoder", True),)
    can_separate_target = True

    def write_config(self, model: EncoderDecoderConfig, max_positions: int) -> Config:
        """Return the config of a model."""
        return {
            **super().write_config(model, max_positions),
            "tie_word_embeddings": True,
            "share_encoder_decoder_embeddings": isinstance(model.target, SharedConfig),
            "decoder_vocab_size": model.target_tokens.vocabulary,
        }

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        settings = super().read_settings(config, tensors)
        if config.flag("share_encoder_decoder_embeddings", True):
            config.require("tie_word_embeddings", True, True)
            return settings
        return settings | {
            "target.kind": "tokens",
            "target.vocabulary": config.integer("decoder_vocab_size", settings["source.vocabulary"]),
            "target.scale": settings["source.scale"],
        }

    def map_embeddings(self, model: EncoderDecoderConfig) -> Rules:
        """Map one tensor for source, target and output, or one for the source and one for target and output."""
        return super().map_embeddings(model) if isinstance(model.target, SharedConfig) else SEPARATE_EMBEDDINGS


MARIAN = MarianArchitecture()
