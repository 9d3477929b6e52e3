"""The models that the parts compare, all from presets, in the size that a part asks for."""

from collections.abc import Mapping
from typing import Any

from regard.config.codec import preset
from regard.config.model import AnyModelConfig

Changes = Mapping[str, Any]  # of settings, by dotted key
NO_CHANGES: Changes = {}
DROPOUT: dict[str, Any] = {f"{stack}.dropout": {} for stack in ("encoder", "decoder")}


def recurrent_translator(
    width: int, score: str | None = "additive", cell: str = "gru", changes: Changes = NO_CHANGES
) -> AnyModelConfig:
    """Return a recurrent translator: Bahdanau's with attention, without a score one with a fixed vector."""
    settings: dict[str, Any] = {"d_model": width, "encoder.cell": cell, "decoder.cell": cell, **DROPOUT}
    if score is None:
        settings |= {"encoder.bidirectional": False, "decoder.cross": {"kind": "fixed_vector"}}
    else:
        hidden = {"hidden": width} if score in ("additive", "concat") else {}
        settings["decoder.cross"] = {"kind": "bahdanau", "score": {"kind": score, **hidden}}
    return preset("rnnsearch", {**settings, **changes})


def transformer_translator(width: int, layers: int = 2, changes: Changes = NO_CHANGES) -> AnyModelConfig:
    """Return a Transformer with pre-norm."""
    stacks: dict[str, Any] = {
        f"{stack}.{key}": value
        for stack in ("encoder", "decoder")
        for key, value in (("layers", layers), ("norm_order", "pre"), ("final_norm", True))
    }
    hidden = {f"{stack}.feedforward.d_ff": 2 * width for stack in ("encoder", "decoder")}
    return preset("tiny", {"d_model": width, **stacks, **hidden, **DROPOUT, **changes})


def recurrent_language_model(width: int, cell: str, layers: int = 1) -> AnyModelConfig:
    """Return a recurrent language model."""
    changes = {"d_model": width, "decoder.cell": cell, "decoder.layers": layers, "decoder.dropout": {}}
    return preset("lstm", changes)


def transformer_language_model(width: int, layers: int = 2) -> AnyModelConfig:
    """Return a Transformer language model."""
    hidden = 8 * width // 3
    changes = {"d_model": width, "decoder.layers": layers, "decoder.feedforward.d_ff": hidden, "decoder.dropout": {}}
    return preset("lm-small", changes)
