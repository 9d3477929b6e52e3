"""All supported architectures by name, and the choice of one for a model."""

from typing import Any

from regard.base.errors import RegardError
from regard.config.exportable import exportable_to
from regard.config.model import AnyModelConfig
from regard.exchange.huggingface.architecture import Architecture
from regard.exchange.huggingface.decoder_only import DECODER_ONLY_MODELS
from regard.exchange.huggingface.encoder_decoder import ENCODER_DECODERS
from regard.exchange.huggingface.encoder_only import ENCODER_ONLY_MODELS
from regard.exchange.huggingface.whisper import WHISPER

AnyArchitecture = Architecture[Any]
_ALL: tuple[AnyArchitecture, ...] = (*ENCODER_DECODERS, *DECODER_ONLY_MODELS, *ENCODER_ONLY_MODELS, WHISPER)
ARCHITECTURES = {architecture.name: architecture for architecture in _ALL}
PREFIX = "huggingface:"  # of the targets in `exportable_to`


def choose_architecture(settings: AnyModelConfig, name: str | None = None, *, location: str) -> AnyArchitecture:
    """Return the first architecture that can represent a model, or the one with this name.

    Raises:
        RegardError: No architecture can; the error lists every obstacle.
    """
    verdicts = {
        verdict.target.removeprefix(PREFIX): verdict
        for verdict in exportable_to(settings)
        if verdict.target.startswith(PREFIX)
    }
    if name in ARCHITECTURES and ARCHITECTURES[name].write_config is None:
        hint = "Use the files that it was imported from."
        raise RegardError(f"Regard reads {name}, but does not write it.", location=location, hint=hint)
    if name is not None and name not in verdicts:
        hint = f"Use one of: {', '.join(verdicts)}."
        raise RegardError(f"'{name}' is not an architecture for this kind of model.", location=location, hint=hint)
    candidates = list(verdicts) if name is None else [name]
    for candidate in candidates:
        if verdicts[candidate].is_exact:
            return ARCHITECTURES[candidate]
    reasons = "\n".join(f"  - {candidate}: {'; '.join(verdicts[candidate].obstacles)}" for candidate in candidates)
    raise RegardError(
        f"No Hugging Face architecture can represent this model exactly:\n{reasons}",
        location=location,
        hint="Train a model with the settings that `regard train` chooses by itself, or export to another target.",
    )
