"""From a folder to something that works on text."""

from pathlib import Path

import torch

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.filler import Filler
from regard.pipeline.labeller import Labeller
from regard.pipeline.translator import Translator
from regard.pipeline.writer import Writer
from regard.store.model_folder import read_model


def load(folder: str | Path, device: str | torch.device = "cpu") -> Translator | Writer | Filler | Labeller:
    """Open a model's folder, or a run's (its best model), verified against its manifest.

    What comes back depends on the model: a `Translator` for an encoder-decoder, a `Writer` for a decoder-only model,
    for an encoder-only one a `Filler`, or a `Labeller` where it classifies or tags.
    """
    stored = read_model(Path(folder))
    model, settings, vocabularies = stored.model.to(device), stored.settings, stored.tokenizers
    if isinstance(model, EncoderDecoder) and isinstance(settings, settings_of.EncoderDecoder):
        return Translator(model, vocabularies, settings)
    if isinstance(model, DecoderOnly) and isinstance(settings, settings_of.DecoderOnly):
        return Writer(model, vocabularies, settings)
    if isinstance(model, EncoderOnly) and isinstance(settings, settings_of.EncoderOnly) and settings.task != "embed":
        kind = Filler if settings.task == "fill" else Labeller
        return kind(model, vocabularies, settings)
    raise RegardError(
        f"A model of the family '{settings.family}' (task '{settings.task}') has no pipeline yet.",
        where=str(stored.path),
        fix="Read it with regard.store.model_folder.read_model and call the model.",
    )
