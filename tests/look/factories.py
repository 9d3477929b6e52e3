"""Inputs and models that several tests of looks use."""

import torch

from regard.nn.attention import Attention

IDS = [20, 41, 62, 83, 104, 125]
LONG = 300  # tokens, more than MAX_COMPLETE_ROWS
SCRIPT = "document.title = 'drawn'"


def zero_head(model: torch.nn.Module, name: str, head: int) -> None:
    """Zero the rows of the output projection that read a head: its values no longer reach the residual."""
    (attention,) = (module for module in model.modules() if isinstance(module, Attention) and module.name == name)
    with torch.no_grad():
        start = head * attention.value_dim
        attention.output.weight[:, start : start + attention.value_dim] = 0.0
