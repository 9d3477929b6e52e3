"""Load a model folder as the pipeline for its task."""

from pathlib import Path
from typing import Literal, TypeVar, overload

import torch

from regard.base.errors import RegardError
from regard.base.files import AnyPath
from regard.config import model as settings_of
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.nn.device import check_device
from regard.pipeline.classifier import Classifier
from regard.pipeline.fill_mask import FillMask
from regard.pipeline.generator import TextGenerator
from regard.pipeline.translator import Translator
from regard.store.model_folder import read_model

AnyDevice = str | torch.device
AnyPipeline = Translator | TextGenerator | FillMask | Classifier
Requested = TypeVar("Requested", bound=AnyPipeline)
TASKS: dict[str, type[AnyPipeline]] = {
    "translate": Translator,
    "continue": TextGenerator,
    "fill": FillMask,
    "classify": Classifier,
    "tag": Classifier,
}


@overload
def load(folder: AnyPath, device: AnyDevice = "cpu", *, task: Literal["translate"]) -> Translator: ...
@overload
def load(folder: AnyPath, device: AnyDevice = "cpu", *, task: Literal["continue"]) -> TextGenerator: ...
@overload
def load(folder: AnyPath, device: AnyDevice = "cpu", *, task: Literal["fill"]) -> FillMask: ...
@overload
def load(folder: AnyPath, device: AnyDevice = "cpu", *, task: Literal["classify", "tag"]) -> Classifier: ...
@overload
def load(folder: AnyPath, device: AnyDevice = "cpu", *, task: None = None) -> AnyPipeline: ...


def load(folder: AnyPath, device: AnyDevice = "cpu", *, task: str | None = None) -> AnyPipeline:
    """Load a model and check its files against the manifest.

    Args:
        folder: A model folder, or a run folder (its best model is loaded).
        device: Device of the model's parameters.
        task: The task that the model must have; type checkers then know the pipeline, as with `load_translator`,
            `load_generator`, `load_fill_mask` and `load_classifier`.

    Returns:
        `Translator` for an encoder-decoder, `TextGenerator` for a decoder-only model; for an encoder-only model
        `FillMask` (masked language model) or `Classifier` (classification, tagging).

    Raises:
        DamagedError: A file differs from the manifest.
        RegardError: The folder holds no model, the model has another task or one without a pipeline, or there is no
            such device.
    """
    if task is not None and task not in TASKS:
        raise RegardError(f"There is no pipeline for the task '{task}'.", fix=f"Use one of: {', '.join(TASKS)}.")
    check_device(device)
    stored = read_model(Path(folder))
    model, settings, tokenizers = stored.model.to(device), stored.settings, stored.tokenizers
    pipeline: AnyPipeline
    if isinstance(model, EncoderDecoder) and isinstance(settings, settings_of.EncoderDecoder):
        pipeline = Translator(model, tokenizers, settings)
    elif isinstance(model, DecoderOnly) and isinstance(settings, settings_of.DecoderOnly):
        pipeline = TextGenerator(model, tokenizers, settings)
    elif isinstance(model, EncoderOnly) and isinstance(settings, settings_of.EncoderOnly) and settings.task != "embed":
        pipeline_class = FillMask if settings.task == "fill" else Classifier
        pipeline = pipeline_class(model, tokenizers, settings)
    else:
        raise RegardError(
            f"A model of the family '{settings.family}' (task '{settings.task}') has no pipeline yet.",
            where=str(stored.path),
            fix="Read it with regard.store.model_folder.read_model and call the model.",
        )
    if task is not None and settings.task != task:
        raise _wrong_task(f"This model's task is '{settings.task}', not '{task}'.", pipeline, folder)
    return pipeline


def load_translator(folder: AnyPath, device: AnyDevice = "cpu") -> Translator:
    """Load a translation model; as `load`, but another kind of model is an error."""
    return _load_as(Translator, folder, device)


def load_generator(folder: AnyPath, device: AnyDevice = "cpu") -> TextGenerator:
    """Load a language model that continues texts; as `load`, but another kind of model is an error."""
    return _load_as(TextGenerator, folder, device)


def load_fill_mask(folder: AnyPath, device: AnyDevice = "cpu") -> FillMask:
    """Load a masked language model; as `load`, but another kind of model is an error."""
    return _load_as(FillMask, folder, device)


def load_classifier(folder: AnyPath, device: AnyDevice = "cpu") -> Classifier:
    """Load a classification or tagging model; as `load`, but another kind of model is an error."""
    return _load_as(Classifier, folder, device)


def _load_as(pipeline_class: type[Requested], folder: AnyPath, device: AnyDevice) -> Requested:
    pipeline = load(folder, device)
    if not isinstance(pipeline, pipeline_class):
        raise _wrong_task(f"This is a {pipeline.kind}, not a {pipeline_class.kind}.", pipeline, folder)
    return pipeline


def _wrong_task(what: str, pipeline: AnyPipeline, folder: AnyPath) -> RegardError:
    loaders = {
        Translator: load_translator,
        TextGenerator: load_generator,
        FillMask: load_fill_mask,
        Classifier: load_classifier,
    }
    loader = loaders[type(pipeline)].__name__
    return RegardError(what, where=str(folder), fix=f"Use regard.{loader}({str(folder)!r}).")
