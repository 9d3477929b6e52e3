"""From a folder to something that works on text."""

from pathlib import Path

import torch

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.classifier import Classifier
from regard.pipeline.fill_mask import FillMask
from regard.pipeline.generator import TextGenerator
from regard.pipeline.translator import Translator
from regard.store.model_folder import read_model


def load(folder: str | Path, device: str | torch.device = "cpu") -> Translator | TextGenerator | FillMask | Classifier:
    """Open a model's folder, or a run's (its best model), verified against its manifest.

    What comes back depends on the model: a `Translator` for an encoder-decoder, a `Writer` for a decoder-only model,
    for an encoder-only one a `Filler`, or a `Labeller` where it classifies or tags.
    """
    stored = read_model(Path(folder))
    model, settings, tokenizers = stored.model.to(device), stored.settings, stored.tokenizers
    if isinstance(model, EncoderDecoder) and isinstance(settings, settings_of.EncoderDecoder):
        return Translator(model, tokenizers, settings)
    if isinstance(model, DecoderOnly) and isinstance(settings, settings_of.DecoderOnly):
        return TextGenerator(model, tokenizers, settings)
    if isinstance(model, EncoderOnly) and isinstance(settings, settings_of.EncoderOnly) and settings.task != "embed":
        pipeline_class = FillMask if settings.task == "fill" else Classifier
        return pipeline_class(model, tokenizers, settings)
    raise RegardError(
        f"A model of the family '{settings.family}' (task '{settings.task}') has no pipeline yet.",
        where=str(stored.path),
        fix="Read it with regard.store.model_folder.read_model and call the model.",
    )
