"""Load a model folder as the pipeline for its task."""

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeVar, get_args, overload

import torch

from regard.base.errors import RegardError
from regard.base.files import AnyPath, verify
from regard.config import codec
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.nn.device import check_device
from regard.pipeline.audio_classifier import AudioClassifier
from regard.pipeline.classifier import Classifier
from regard.pipeline.ctranslate2 import NAME as CTRANSLATE2
from regard.pipeline.ctranslate2_pipelines import CTranslate2Generator, CTranslate2Translator
from regard.pipeline.embedder import Embedder, read_pooling
from regard.pipeline.fill_mask import FillMask
from regard.pipeline.generator import TextGenerator
from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.image_classifier import ImageClassifier
from regard.pipeline.image_generator import ImageGenerator
from regard.pipeline.transcriber import Transcriber
from regard.pipeline.translator import Translator
from regard.store.adapter_folder import load_adapters
from regard.store.export_folder import find_exports, hash_of_weights, is_export, read_export_info, read_parity
from regard.store.model_folder import WEIGHTS, read_model, reads_audio, reads_images
from regard.store.model_path import MODEL, find_model
from regard.text.tokenizer_pair import TokenizerPair

AnyDevice = str | torch.device
AnyPipeline = (
    Translator
    | TextGenerator
    | FillMask
    | Classifier
    | Embedder
    | ImageCaptioner
    | ImageClassifier
    | ImageGenerator
    | AudioClassifier
    | Transcriber
)
Engine = Literal["torch", "ctranslate2", "auto"]
Requested = TypeVar("Requested", bound=AnyPipeline)
TASKS: dict[str, type[AnyPipeline]] = {
    "translate": Translator,
    "causal_lm": TextGenerator,
    "masked_lm": FillMask,
    "classify": Classifier,
    "tag": Classifier,
    "embed": Embedder,
    "classify_images": ImageClassifier,
    "generate_images": ImageGenerator,
    "classify_audio": AudioClassifier,
    "transcribe": Transcriber,
    "caption": ImageCaptioner,
}


@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["translate"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> Translator: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["causal_lm"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> TextGenerator: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["masked_lm"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> FillMask: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["classify", "tag"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> Classifier: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["embed"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> Embedder: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["classify_images"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> ImageClassifier: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["generate_images"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> ImageGenerator: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["classify_audio"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> AudioClassifier: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["transcribe"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> Transcriber: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: Literal["caption"],
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> ImageCaptioner: ...
@overload
def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: None = None,
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> AnyPipeline: ...


def load(
    folder: AnyPath,
    device: AnyDevice = "cpu",
    *,
    task: str | None = None,
    engine: Engine = "torch",
    adapters: Mapping[str, AnyPath] | None = None,
) -> AnyPipeline:
    """Load a model and check its files against the manifest.

    Args:
        folder: A model folder, a run folder (its best model is loaded), or an export to CTranslate2.
        device: Device of the model's parameters.
        task: The task that the model must have; type checkers then know the pipeline, as with `load_translator`,
            `load_generator`, `load_fill_mask`, `load_classifier` and `load_embedder`. Every encoder of text can
            "embed"; a model that labels images has the task "classify_images", one that generates them
            "generate_images", one that labels audio clips "classify_audio".
        engine: `ctranslate2` runs the export of the model, `FOLDER-ctranslate2` beside it, unless `folder` is the
            export itself. `auto` does so if there is an export of these weights whose parity passed.
        adapters: LoRA adapters of this model by name: adapter folders, or folders of runs. A call uses one of them
            inside `with pipeline.adapters.active(name):`.

    Returns:
        `Translator` for an encoder-decoder, `Transcriber` if it reads audio and `ImageCaptioner` if it reads images;
        `TextGenerator` for a decoder-only model, `ImageGenerator` if its tokens are pixels; for an encoder-only model
        `FillMask` (masked language model), `Classifier` (classification, tagging), `Embedder` (no head),
        `ImageClassifier` or `AudioClassifier`.

    Raises:
        DamagedError: A file differs from the manifest.
        RegardError: The folder holds no model, the model has another task or one without a pipeline, there is no
            such device, or no export for the engine.
    """
    if task is not None and task not in TASKS:
        raise RegardError(f"There is no pipeline for the task '{task}'.", hint=f"Use one of: {', '.join(TASKS)}.")
    if engine not in get_args(Engine):
        raise RegardError(f"There is no engine '{engine}'.", hint=f"Use one of: {', '.join(get_args(Engine))}.")
    check_device(device)
    path = Path(folder)
    export = _find_export(path, engine)
    pipeline = _load_torch(path, device, task) if export is None else _load_export(export, path, device)
    if adapters:
        if export is not None:
            hint = "Load the model with engine='torch', or export the merged model of the adapter's run."
            raise RegardError("Adapters run in PyTorch only, and this is an export.", location=str(export), hint=hint)
        folders = {name: Path(adapter) for name, adapter in adapters.items()}
        pipeline.adapters = load_adapters(pipeline.model, path, folders)
    names: dict[type, str] = {Embedder: "embed", ImageClassifier: "classify_images"}
    names |= {ImageGenerator: "generate_images", AudioClassifier: "classify_audio"}
    actual_task = names.get(type(pipeline), pipeline.settings.task)
    if task is not None and actual_task != task:
        raise _wrong_task(f"This model's task is '{actual_task}', not '{task}'.", pipeline, folder)
    return pipeline


def load_translator(folder: AnyPath, device: AnyDevice = "cpu", *, engine: Engine = "torch") -> Translator:
    """Load a translation model; as `load`, but another kind of model is an error."""
    return _load_as(Translator, folder, device, engine)


def load_generator(folder: AnyPath, device: AnyDevice = "cpu", *, engine: Engine = "torch") -> TextGenerator:
    """Load a language model that continues texts; as `load`, but another kind of model is an error."""
    return _load_as(TextGenerator, folder, device, engine)


def load_fill_mask(folder: AnyPath, device: AnyDevice = "cpu") -> FillMask:
    """Load a masked language model; as `load`, but another kind of model is an error."""
    return _load_as(FillMask, folder, device)


def load_classifier(folder: AnyPath, device: AnyDevice = "cpu") -> Classifier:
    """Load a classification or tagging model; as `load`, but another kind of model is an error."""
    return _load_as(Classifier, folder, device)


def load_embedder(folder: AnyPath, device: AnyDevice = "cpu") -> Embedder:
    """Load an encoder of any task to embed texts; another kind of model is an error."""
    return load(folder, device, task="embed")


def load_image_classifier(folder: AnyPath, device: AnyDevice = "cpu") -> ImageClassifier:
    """Load a model that labels images; as `load`, but another kind of model is an error."""
    return _load_as(ImageClassifier, folder, device)


def load_image_generator(folder: AnyPath, device: AnyDevice = "cpu") -> ImageGenerator:
    """Load a model that generates images; as `load`, but another kind of model is an error."""
    return _load_as(ImageGenerator, folder, device)


def load_audio_classifier(folder: AnyPath, device: AnyDevice = "cpu") -> AudioClassifier:
    """Load a model that labels audio clips; as `load`, but another kind of model is an error."""
    return _load_as(AudioClassifier, folder, device)


def load_transcriber(folder: AnyPath, device: AnyDevice = "cpu") -> Transcriber:
    """Load a model that transcribes audio clips; as `load`, but another kind of model is an error."""
    return _load_as(Transcriber, folder, device)


def load_image_captioner(folder: AnyPath, device: AnyDevice = "cpu") -> ImageCaptioner:
    """Load a model that captions images; as `load`, but another kind of model is an error."""
    return _load_as(ImageCaptioner, folder, device)


def _load_as(
    pipeline_class: type[Requested], folder: AnyPath, device: AnyDevice, engine: Engine = "torch"
) -> Requested:
    pipeline = load(folder, device, engine=engine)
    if not isinstance(pipeline, pipeline_class):
        raise _wrong_task(f"This is a {pipeline.kind}, not a {pipeline_class.kind}.", pipeline, folder)
    return pipeline


def _load_torch(folder: Path, device: AnyDevice, task: str | None) -> AnyPipeline:
    stored = read_model(folder)
    model, settings = stored.model.to(device), stored.settings
    if isinstance(model, EncoderOnly) and isinstance(settings, EncoderOnlyConfig) and reads_images(settings):
        return ImageClassifier(model, settings)
    if isinstance(model, EncoderOnly) and isinstance(settings, EncoderOnlyConfig) and reads_audio(settings):
        return AudioClassifier(model, settings)
    tokenizers = stored.tokenizers
    if isinstance(model, EncoderDecoder) and isinstance(settings, EncoderDecoderConfig):
        if reads_images(settings):
            return ImageCaptioner(model, tokenizers, settings)
        return (Transcriber if reads_audio(settings) else Translator)(model, tokenizers, settings)
    if isinstance(model, DecoderOnly) and isinstance(settings, DecoderOnlyConfig):
        return (TextGenerator if settings.raster is None else ImageGenerator)(model, tokenizers, settings)
    if isinstance(model, EncoderOnly) and isinstance(settings, EncoderOnlyConfig):
        if task == "embed" or settings.task in ("embed", "cbow", "skip_gram"):
            return Embedder(model, tokenizers, settings, read_pooling(stored.path))
        pipeline_class = FillMask if settings.task == "masked_lm" else Classifier
        return pipeline_class(model, tokenizers, settings)
    raise RegardError(
        f"A model of the family '{settings.family}' (task '{settings.task}') has no pipeline yet.",
        location=str(stored.path),
        hint="Read it with regard.store.model_folder.read_model and call the model.",
    )


def _find_export(folder: Path, engine: Engine) -> Path | None:
    """Return the export that the engine runs; None: PyTorch runs the model."""
    if is_export(folder):
        if engine == "torch":
            hint = "Load it with engine='ctranslate2' (on the command line: --engine ctranslate2)."
            raise RegardError("This is an export, not a model of PyTorch.", location=str(folder), hint=hint)
        return folder
    if engine == "torch" or (engine == "auto" and find_spec("ctranslate2") is None):
        return None
    model = find_model(folder)
    problem = "There is no export of this model to CTranslate2."
    for place in find_exports(folder, model, CTRANSLATE2):
        if read_export_info(place).weights != hash_of_weights(model, WEIGHTS):
            problem = f"The export {place} was made from other weights."
        elif engine == CTRANSLATE2 or read_parity(place).get("passed") is True:
            return place
    if engine == "auto":
        return None
    raise RegardError(problem, location=str(folder), hint=f"Run `regard export {folder} --to ctranslate2 --replace`.")


def _load_export(export: Path, folder: Path, device: AnyDevice) -> AnyPipeline:
    """Load an export; `folder` holds the PyTorch model for what the engine lacks, unless it is the export itself."""
    verify(export)
    info, settings, tokenizers = (
        read_export_info(export),
        codec.MODEL_FILES.load(export / MODEL),
        TokenizerPair.load(export),
    )
    if info.engine == CTRANSLATE2 and isinstance(settings, EncoderDecoderConfig):
        load_torch = None if folder == export else partial(load_translator, folder, device)
        return CTranslate2Translator(export, info, tokenizers, settings, torch.device(device), load_torch)
    if info.engine == CTRANSLATE2 and isinstance(settings, DecoderOnlyConfig):
        load_generator_lazily = None if folder == export else partial(load_generator, folder, device)
        return CTranslate2Generator(export, info, tokenizers, settings, torch.device(device), load_generator_lazily)
    raise RegardError(
        f"There is no pipeline for an export of the family '{settings.family}' to {info.engine}.",
        location=str(export),
        hint="Load the model with engine='torch', or the export with its own library.",
    )


def _wrong_task(message: str, pipeline: AnyPipeline, folder: AnyPath) -> RegardError:
    loaders = {
        Translator: load_translator,
        TextGenerator: load_generator,
        FillMask: load_fill_mask,
        Classifier: load_classifier,
        Embedder: load_embedder,
        ImageClassifier: load_image_classifier,
        ImageGenerator: load_image_generator,
        AudioClassifier: load_audio_classifier,
        Transcriber: load_transcriber,
        ImageCaptioner: load_image_captioner,
    }
    loader = next(loader for pipeline_class, loader in loaders.items() if isinstance(pipeline, pipeline_class))
    return RegardError(message, location=str(folder), hint=f"Use regard.{loader.__name__}({str(folder)!r}).")
