"""Load a model folder as the pipeline for its task.

PyTorch is not imported for CTranslate2 exports.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from regard.base.arguments import as_path, check_type
from regard.base.errors import RegardError
from regard.base.files import AnyPath, verify
from regard.base.formatting import quote_path
from regard.config import codec
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.config.task_spec import find_spec
from regard.store.export_folder import CTRANSLATE2, Engine, find_export, read_export_info
from regard.store.model_path import MODEL
from regard.tasks.pipeline import Pipeline
from regard.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    import torch

    from regard.tasks.audio_classification import AudioClassifier
    from regard.tasks.captioning import ImageCaptioner
    from regard.tasks.causal_lm.generator import TextGenerator
    from regard.tasks.embedding import Embedder
    from regard.tasks.image_classification import ImageClassifier
    from regard.tasks.image_generation import ImageGenerator
    from regard.tasks.masked_lm import FillMask
    from regard.tasks.text_classification import Classifier
    from regard.tasks.transcription import Transcriber
    from regard.tasks.translation.translator import Translator

    AnyDevice = str | torch.device
AnyPipeline = Pipeline
EMBEDDING = "embedding"  # the task that every text encoder supports


class LoadOptions(TypedDict, total=False):
    """Further options of `load`."""

    engine: Engine
    adapters: Mapping[str, AnyPath] | None


@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: Literal["translation"], **options: Unpack[LoadOptions]
) -> "Translator": ...
@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: Literal["causal_lm"], **options: Unpack[LoadOptions]
) -> "TextGenerator": ...
@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: Literal["masked_lm"], **options: Unpack[LoadOptions]
) -> "FillMask": ...
@overload
def load(
    folder: AnyPath,
    device: "AnyDevice" = ...,
    *,
    task: Literal["text_classification", "tagging"],
    **options: Unpack[LoadOptions],
) -> "Classifier": ...
@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: Literal["embedding"], **options: Unpack[LoadOptions]
) -> "Embedder": ...
@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: Literal["image_classification"], **options: Unpack[LoadOptions]
) -> "ImageClassifier": ...
@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: Literal["image_generation"], **options: Unpack[LoadOptions]
) -> "ImageGenerator": ...
@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: Literal["audio_classification"], **options: Unpack[LoadOptions]
) -> "AudioClassifier": ...
@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: Literal["transcription"], **options: Unpack[LoadOptions]
) -> "Transcriber": ...
@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: Literal["captioning"], **options: Unpack[LoadOptions]
) -> "ImageCaptioner": ...
@overload
def load(
    folder: AnyPath, device: "AnyDevice" = ..., *, task: None = None, **options: Unpack[LoadOptions]
) -> AnyPipeline: ...


def load(
    folder: AnyPath,
    device: "AnyDevice" = "cpu",
    *,
    task: str | None = None,
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> AnyPipeline:
    """Load a model and check its files against the manifest.

    Args:
        folder: A model folder, a run folder (loads its best model), or a CTranslate2 export.
        device: Device of the model's parameters.
        task: The expected task. Every text encoder can be loaded for "embedding".
        engine: `ctranslate2` runs the model's export: `folder` itself, `FOLDER-ctranslate2` next to it, or a cached
            one; `ctranslate2-int8` runs an int8 export. `auto` uses an export of the same weights that passed the
            parity check, if any.
        adapters: LoRA adapters of this model by name: adapter folders or run folders. Select one with `with
            pipeline.adapters.active(name):`.

    Returns:
        The pipeline for the model's task, e.g. a `Translator`. `load_translator` and the other typed loaders return a
        specific type.

    Raises:
        DamagedError: A file differs from the manifest.
        RegardError: The folder has no model, the task does not match or has no pipeline, the device is missing, or
            there is no export for the engine.
    """
    path = as_path("folder", folder)
    if task is not None:
        check_type("task", task, str, "the name of a task")
        find_spec(task)  # reports an unknown task
    if str(device) != "cpu":  # every machine has it
        from regard.nn.device import check_device

        check_device(device)
    export = find_export(path, engine)
    if export is None and engine not in ("torch", "auto"):
        message = "There is no CTranslate2 export of this model in this type, or it was made from different weights."
        dtype = "".join(f" --type {name}" for name in engine.split("-")[1:])
        hint = f"Run `regard export {quote_path(folder)} --to {CTRANSLATE2}{dtype} --replace`."
        raise RegardError(message, location=str(folder), hint=hint)
    pipeline = _load_torch(path, device, task) if export is None else _load_export(export, path, device)
    pipeline.folder = path
    if adapters:
        if export is not None:
            hint = "Load the model with engine='torch', or export the merged model of the adapter's run."
            raise RegardError("Adapters run in PyTorch only, but this is an export.", location=str(export), hint=hint)
        from regard.store.adapter_folder import load_adapters  # needs PyTorch

        folders = {name: Path(adapter) for name, adapter in adapters.items()}
        pipeline.adapters = load_adapters(pipeline.model, path, folders)
    if task not in (None, pipeline.settings.task, pipeline.view):
        raise _wrong_task(f"This model's task is '{pipeline.settings.task}', not '{task}'.", pipeline, folder)
    return pipeline


def load_translator(folder: AnyPath, device: "AnyDevice" = "cpu", *, engine: Engine = "torch") -> "Translator":
    """Load a translation model; like `load`, but raises an error for other models."""
    return _load_as("translation", folder, device, engine)


def load_generator(folder: AnyPath, device: "AnyDevice" = "cpu", *, engine: Engine = "torch") -> "TextGenerator":
    """Load a language model; like `load`, but raises an error for other models."""
    return _load_as("causal_lm", folder, device, engine)


def load_fill_mask(folder: AnyPath, device: "AnyDevice" = "cpu") -> "FillMask":
    """Load a masked language model; like `load`, but raises an error for other models."""
    return _load_as("masked_lm", folder, device)


def load_classifier(folder: AnyPath, device: "AnyDevice" = "cpu") -> "Classifier":
    """Load a text classification or tagging model; like `load`, but raises an error for other models."""
    return _load_as("text_classification", folder, device)


def load_embedder(folder: AnyPath, device: "AnyDevice" = "cpu") -> "Embedder":
    """Load a text encoder of any task to embed texts; raises an error for other models."""
    return load(folder, device, task="embedding")


def load_image_classifier(folder: AnyPath, device: "AnyDevice" = "cpu") -> "ImageClassifier":
    """Load an image classification model; like `load`, but raises an error for other models."""
    return _load_as("image_classification", folder, device)


def load_image_generator(folder: AnyPath, device: "AnyDevice" = "cpu") -> "ImageGenerator":
    """Load an image generation model; like `load`, but raises an error for other models."""
    return _load_as("image_generation", folder, device)


def load_audio_classifier(folder: AnyPath, device: "AnyDevice" = "cpu") -> "AudioClassifier":
    """Load an audio classification model; like `load`, but raises an error for other models."""
    return _load_as("audio_classification", folder, device)


def load_transcriber(folder: AnyPath, device: "AnyDevice" = "cpu") -> "Transcriber":
    """Load a transcription model; like `load`, but raises an error for other models."""
    return _load_as("transcription", folder, device)


def load_image_captioner(folder: AnyPath, device: "AnyDevice" = "cpu") -> "ImageCaptioner":
    """Load an image captioning model; like `load`, but raises an error for other models."""
    return _load_as("captioning", folder, device)


def _load_as(task: str, folder: AnyPath, device: "AnyDevice", engine: Engine = "torch") -> Any:
    pipeline = load(folder, device, engine=engine)
    if pipeline.settings.task == task:
        return pipeline
    from regard.tasks.task import find_task  # imports PyTorch

    if not isinstance(pipeline, pipeline_class := find_task(task).pipeline_class):
        raise _wrong_task(f"This is a {pipeline.kind}, not a {pipeline_class.kind}.", pipeline, folder)
    return pipeline


def _load_torch(folder: Path, device: "AnyDevice", task: str | None) -> AnyPipeline:
    from regard.store.model_folder import read_model
    from regard.tasks.task import find_task

    stored = read_model(folder)
    stored.model.to(device)
    spec, wanted = find_spec(stored.settings.task), find_spec(task or stored.settings.task)
    is_view = task == EMBEDDING and (spec.family, spec.input) == (wanted.family, wanted.input)
    return find_task(wanted.name if is_view else spec.name).pipeline(stored)


def _load_export(export: Path, folder: Path, device: "AnyDevice") -> AnyPipeline:
    """Load an export; `folder` has the PyTorch model for unsupported features, unless it is the export itself."""
    verify(export)
    info, settings, tokenizers = (
        read_export_info(export),
        codec.MODEL_FILES.load(export / MODEL),
        TokenizerPair.load(export),
    )
    if info.engine == CTRANSLATE2 and isinstance(settings, EncoderDecoderConfig):
        from regard.tasks.translation.ctranslate2_translator import CTranslate2Translator

        load_torch = None if folder == export else partial(load_translator, folder, device)
        return CTranslate2Translator(export, info, tokenizers, settings, str(device), load_torch)
    if info.engine == CTRANSLATE2 and isinstance(settings, DecoderOnlyConfig):
        from regard.tasks.causal_lm.ctranslate2_generator import CTranslate2Generator

        load_generator_lazily = None if folder == export else partial(load_generator, folder, device)
        return CTranslate2Generator(export, info, tokenizers, settings, str(device), load_generator_lazily)
    raise RegardError(
        f"There is no pipeline for an export of the family '{settings.family}' to {info.engine}.",
        location=str(export),
        hint="Load the model with engine='torch', or the export with its own library.",
    )


def _wrong_task(message: str, pipeline: AnyPipeline, folder: AnyPath) -> RegardError:
    return RegardError(message, location=str(folder), hint=f"Use regard.{pipeline.loader}({str(folder)!r}).")
