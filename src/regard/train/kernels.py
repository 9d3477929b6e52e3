"""How a run lets its model compute: equal in what comes out, unlike in time and memory."""

from torch import nn

from regard.config.run import Run
from regard.nn.attention import set_attention_float32
from regard.nn.stack import Stack


def apply_device_settings(model: nn.Module, run: Run) -> None:
    """Attention in float32 or in the run's precision; the inside of layers kept or computed again on the way back."""
    set_attention_float32(model, run.device.attention == "float32")
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpoint_activations = run.train.checkpoint_activations
