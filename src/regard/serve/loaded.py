"""What a model folder holds, in memory: the pipeline with its adapters, warm and packed."""

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.base.errors import RegardError
from regard.pipeline.audio_classifier import AudioClassifier
from regard.pipeline.classifier import Classifier
from regard.pipeline.embedder import Embedder, read_pooling
from regard.pipeline.fill_mask import FillMask
from regard.pipeline.generator import TextGenerator
from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.image_classifier import ImageClassifier
from regard.pipeline.image_generator import ImageGenerator
from regard.pipeline.load import AnyPipeline, Engine, load
from regard.pipeline.transcriber import Transcriber
from regard.pipeline.translator import Translator
from regard.serve.settings import ServeConfig
from regard.store.adapter_folder import read_adapter_settings
from regard.store.calibration import read_temperature
from regard.store.export_folder import hash_of_weights, is_export, read_export_info
from regard.store.model_folder import WEIGHTS
from regard.store.model_path import find_model

logger = logging.getLogger("regard.serve")
WARM_UP_TEXTS = ("a", "one two three four five six seven eight")


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """What a model folder holds."""

    pipeline: AnyPipeline
    embedder: Embedder | None
    """What gives the vectors of an encoder of text; it shares the weights of the pipeline."""
    temperature: float
    """Of the softmax, fitted so that probabilities are right as often as they say."""
    version: int
    """Time of the folder's last change, in nanoseconds."""
    prepared: ExitStack
    """Holds the weights of a PyTorch model packed; otherwise every batch would pack them again."""
    has_adapters: bool

    def activate(self, adapter: str | None) -> None:
        """Use an adapter from now on, or None; the weights are merged and packed again if it is another one."""
        if self.has_adapters:
            self.pipeline.adapters.activate(adapter)

    @property
    def has_packed_weights(self) -> bool:
        """Whether a stream that has begun needs its adapter no more: it reads the packed copy that it began with."""
        pipeline = self.pipeline
        return self.has_adapters and isinstance(pipeline, Translator | TextGenerator) and pipeline.has_packed_weights


def load_model(folder: Path, engine: Engine, adapters: Mapping[str, Path]) -> LoadedModel:
    """Load a model folder and run the model once for each kind of work, so that the first client does not wait."""
    if adapters and engine == "auto" and not is_export(folder):
        engine = "torch"
        logger.info("PyTorch runs %s: CTranslate2 cannot change adapters", folder)
    pipeline = load(folder, engine=engine, adapters=adapters)
    if isinstance(pipeline, ImageGenerator):
        message, hint = "The server has no route for models that generate images.", "Use `regard generate`."
        raise RegardError(message, location=str(folder), hint=hint)
    if isinstance(pipeline, FillMask):
        pipeline = load(folder, task="embed", adapters=adapters)
    path, prepared = find_model(folder), ExitStack()
    embedder = _make_embedder(pipeline, path)
    if isinstance(pipeline, Translator | TextGenerator | Transcriber | ImageCaptioner):
        prepared.enter_context(pipeline.prepared())
    _warm_up(pipeline)
    if embedder is not None:
        embedder.embed(list(WARM_UP_TEXTS))
    version = path.stat().st_mtime_ns
    return LoadedModel(pipeline, embedder, read_temperature(path), version, prepared, bool(adapters))


def _make_embedder(pipeline: AnyPipeline, path: Path) -> Embedder | None:
    """Return what gives vectors: every encoder of text, whatever its task; None for other models."""
    if isinstance(pipeline, Classifier):
        return Embedder(pipeline.model, pipeline.tokenizers, pipeline.settings, read_pooling(path))
    return pipeline if isinstance(pipeline, Embedder) else None


def _warm_up(pipeline: AnyPipeline) -> None:
    """Run a model once."""
    if isinstance(pipeline, Translator):
        language = next(iter(pipeline.tokenizers.source.specials.languages), None)
        pipeline.translate(list(WARM_UP_TEXTS), max_new_tokens=4, target_language=language)
    elif isinstance(pipeline, TextGenerator):
        pipeline.generate(list(WARM_UP_TEXTS), max_new_tokens=2)
    elif isinstance(pipeline, Classifier):
        texts = list(WARM_UP_TEXTS)
        pipeline.tag(texts) if pipeline.settings.task == "tag" else pipeline.classify(texts)
    elif isinstance(pipeline, ImageClassifier | ImageCaptioner):
        patch, channels = pipeline.patches.patch, pipeline.patches.channels
        black = np.zeros((patch, patch, channels), np.uint8)
        if isinstance(pipeline, ImageCaptioner):
            pipeline.caption(black, max_new_tokens=2)
        else:
            pipeline.classify(black)
    elif isinstance(pipeline, AudioClassifier | Transcriber):
        silence = np.zeros(max(1, (pipeline.mel.rate or 0) // 4), np.int16)
        if isinstance(pipeline, Transcriber):
            pipeline.transcribe(silence, max_new_tokens=2)
        else:
            pipeline.classify(silence)


def assign_adapters(settings: ServeConfig) -> dict[str, dict[str, Path]]:
    """Return the adapters of each model, by name: an adapter belongs to the model whose weights it was trained for.

    Raises:
        RegardError: An adapter has the name of a model, no model that is served has its weights, or the engine cannot
            change adapters.
    """
    adapters: dict[str, dict[str, Path]] = {name: {} for name in settings.models}
    if settings.adapters and settings.engine == "ctranslate2":
        name, folder = next(iter(settings.adapters.items()))
        hint = f"Use --engine torch, or serve the adapter as a model of its own, merged: {name}={folder}."
        raise RegardError("CTranslate2 cannot change adapters.", location=f"the adapter '{name}'", hint=hint)
    hashes = {name: _hash_of_model(folder) for name, folder in settings.models.items()} if settings.adapters else {}
    for name, folder in settings.adapters.items():
        if name in settings.models:
            hint = "Give the adapter another one: --adapter NAME=FOLDER."
            raise RegardError(f"A model and an adapter have the name '{name}'.", hint=hint)
        stored = read_adapter_settings(folder)
        model = next((model for model, sha256 in hashes.items() if sha256 == stored.parent_sha256), None)
        if model is None:
            message = f"The adapter '{name}' belongs to other weights than those of {', '.join(settings.models)}."
            raise RegardError(message, location=str(folder), hint=f"Serve it beside its parent, {stored.parent}.")
        adapters[model][name] = folder
    return adapters


def _hash_of_model(folder: Path) -> str:
    """Return the sha256 of a model's weights; for an export those that it was made from."""
    return read_export_info(folder).weights if is_export(folder) else hash_of_weights(find_model(folder), WEIGHTS)
