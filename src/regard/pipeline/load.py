"""Load a model folder as the pipeline for its task."""

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
    """Load a model and check its files against the manifest.

    Args:
        folder: A model folder, or a run folder (its best model is loaded).
        device: Device of the model's parameters.

    Returns:
        `Translator` for an encoder-decoder, `TextGenerator` for a decoder-only model; for an encoder-only model
        `FillMask` (masked language model) or `Classifier` (classification, tagging).

    Raises:
        DamagedError: A file differs from the manifest.
        RegardError: The folder holds no model, or there is no pipeline for the model's task.
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
