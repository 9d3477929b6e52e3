"""All supported architectures by name, and the choice of one for a model."""

from typing import Any

from regard.base.errors import RegardError
from regard.config.model import AnyModelConfig
from regard.exchange.huggingface.architecture import Architecture
from regard.exchange.huggingface.bart import BART
from regard.exchange.huggingface.bert import BERTS
from regard.exchange.huggingface.esm import ESMS
from regard.exchange.huggingface.gpt2 import GPT2
from regard.exchange.huggingface.llama import LLAMA
from regard.exchange.huggingface.marian import MARIAN
from regard.exchange.huggingface.mbart import MBART
from regard.exchange.huggingface.pegasus import PEGASUS
from regard.exchange.huggingface.qwen2 import QWEN2
from regard.exchange.huggingface.qwen3 import QWEN3
from regard.exchange.huggingface.t5 import T5
from regard.exchange.huggingface.whisper import WHISPER
from regard.exchange.rules import find_layer_obstacles

AnyArchitecture = Architecture[Any]
_ALL: tuple[AnyArchitecture, ...] = (
    MARIAN,
    PEGASUS,
    BART,
    MBART,
    T5,
    GPT2,
    LLAMA,
    QWEN2,
    QWEN3,
    *BERTS,
    *ESMS,
    WHISPER,
)
ARCHITECTURES = {architecture.name: architecture for architecture in _ALL}
"""In the order in which an export tries them."""


def find_obstacles(model: AnyModelConfig) -> dict[str, tuple[str, ...]]:
    """Return the obstacles of each architecture for the model's family and head; empty: it can represent the model."""
    common = tuple(find_layer_obstacles(model))
    return {
        name: common or tuple(architecture.find_obstacles(model))
        for name, architecture in ARCHITECTURES.items()
        if architecture.is_candidate(model)
    }


def choose_architecture(model: AnyModelConfig, name: str | None = None, *, location: str) -> AnyArchitecture:
    """Return the first architecture that can represent a model, or the one with this name.

    Raises:
        RegardError: No architecture can; the error lists every obstacle.
    """
    obstacles = find_obstacles(model)
    if name in ARCHITECTURES and not ARCHITECTURES[name].is_written:
        hint = "Use the original files."
        raise RegardError(f"Regard imports {name} but does not export it.", location=location, hint=hint)
    if name is not None and name not in obstacles:
        hint = f"Use one of: {', '.join(obstacles)}."
        raise RegardError(f"'{name}' is not an architecture for this kind of model.", location=location, hint=hint)
    candidates = list(obstacles) if name is None else [name]
    for candidate in candidates:
        if not obstacles[candidate]:
            return ARCHITECTURES[candidate]
    reasons = "\n".join(f"  - {candidate}: {'; '.join(obstacles[candidate])}" for candidate in candidates)
    raise RegardError(
        f"No Hugging Face architecture can represent this model exactly:\n{reasons}",
        location=location,
        hint="Train a model with the default settings of `regard train`, or export to another target.",
    )
