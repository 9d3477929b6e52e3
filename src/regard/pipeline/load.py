"""From a folder to something that works on text."""

from pathlib import Path

import torch

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline.translator import Translator
from regard.pipeline.writer import Writer
from regard.store.model_folder import read_model


def load(folder: str | Path, device: str | torch.device = "cpu") -> Translator | Writer:
    """Open a model's folder, or a run's (its best model), verified against its manifest.

    What comes back depends on the model: a `Translator` for an encoder-decoder, a `Writer` for a decoder-only model.
    """
    stored = read_model(Path(folder))
    model, settings, vocabularies = stored.model.to(device), stored.settings, stored.vocabularies
    if isinstance(model, EncoderDecoder) and isinstance(settings, settings_of.EncoderDecoder):
        return Translator(model, vocabularies, settings)
    if isinstance(model, DecoderOnly) and isinstance(settings, settings_of.DecoderOnly):
        return Writer(model, vocabularies, settings)
    raise RegardError(
        f"A model of the family '{settings.family}' (task '{settings.task}') neither translates nor writes.",
        where=str(stored.path),
        fix="There is no pipeline for it yet: read it with regard.store.model_folder.read_model and call the model.",
    )
