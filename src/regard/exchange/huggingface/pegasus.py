"""Pegasus: a Marian with pre-norm and shared embeddings."""

from dataclasses import replace

from regard.config.model import EncoderDecoderConfig
from regard.exchange.huggingface.config_reader import Config
from regard.exchange.huggingface.marian import SinusoidalBartArchitecture


class PegasusArchitecture(SinusoidalBartArchitecture):
    """`PegasusForConditionalGeneration`."""

    name, model_type = "PegasusForConditionalGeneration", "pegasus"
    rules = replace(SinusoidalBartArchitecture.rules, norm_order="pre")

    def write_config(self, model: EncoderDecoderConfig, max_positions: int) -> Config:
        """Return the config of a model."""
        norms = {"normalize_before": True, "add_final_layer_norm": True}
        return super().write_config(model, max_positions) | norms


PEGASUS = PegasusArchitecture()
