"""Regard: train, evaluate, inspect and run Transformers on your own text.

Public names are imported on first use, so that `import regard` is fast and does not import torch. It sets
`OMP_WAIT_POLICY=passive` unless the environment says how OpenMP threads wait (`regard.base.process_start`).
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from regard.base import process_start as _process_start  # noqa: F401 - sets OMP_WAIT_POLICY before torch is imported
from regard.base.version import __version__ as __version__

if _TYPE_CHECKING:
    from regard._api import evaluate, resume, train, tune
    from regard.base.errors import RegardError
    from regard.config.codec import list_presets, preset
    from regard.decode.filters import Filters
    from regard.exchange.export import export_model
    from regard.exchange.exportable import exportable_to
    from regard.exchange.importer import import_model
    from regard.look.build import look_into
    from regard.models.build import build
    from regard.models.cost import cost
    from regard.nn.record import Record
    from regard.nn.registry import register
    from regard.store.save import save
    from regard.tasks.audio_classification import AudioClassifier
    from regard.tasks.captioning import ImageCaptioner
    from regard.tasks.causal_lm.generator import TextGenerator
    from regard.tasks.causal_lm.prompt_classifier import PromptClassifier
    from regard.tasks.embedding import Embedder
    from regard.tasks.image_classification import ImageClassifier
    from regard.tasks.image_generation import ImageGenerator
    from regard.tasks.load import (
        load,
        load_audio_classifier,
        load_classifier,
        load_embedder,
        load_fill_mask,
        load_generator,
        load_image_captioner,
        load_image_classifier,
        load_image_generator,
        load_transcriber,
        load_translator,
    )
    from regard.tasks.masked_lm import FillMask
    from regard.tasks.search import Beam, Sampling
    from regard.tasks.text_classification import Classifier
    from regard.tasks.token_vectors import load_token_vectors
    from regard.tasks.transcription import Transcriber
    from regard.tasks.translation.translator import Translator
    from regard.text.learn import learn_tokenizer

__all__ = [
    "AudioClassifier",
    "Beam",
    "Classifier",
    "Embedder",
    "FillMask",
    "Filters",
    "ImageCaptioner",
    "ImageClassifier",
    "ImageGenerator",
    "PromptClassifier",
    "Record",
    "RegardError",
    "Sampling",
    "TextGenerator",
    "Transcriber",
    "Translator",
    "build",
    "cost",
    "evaluate",
    "export_model",
    "exportable_to",
    "import_model",
    "learn_tokenizer",
    "list_presets",
    "load",
    "load_audio_classifier",
    "load_classifier",
    "load_embedder",
    "load_fill_mask",
    "load_generator",
    "load_image_captioner",
    "load_image_classifier",
    "load_image_generator",
    "load_token_vectors",
    "load_transcriber",
    "load_translator",
    "look_into",
    "preset",
    "register",
    "resume",
    "save",
    "train",
    "tune",
]
_MODULES = {
    "AudioClassifier": "tasks.audio_classification",
    "Beam": "tasks.search",
    "Classifier": "tasks.text_classification",
    "Embedder": "tasks.embedding",
    "FillMask": "tasks.masked_lm",
    "Filters": "decode.filters",
    "ImageCaptioner": "tasks.captioning",
    "ImageClassifier": "tasks.image_classification",
    "ImageGenerator": "tasks.image_generation",
    "PromptClassifier": "tasks.causal_lm.prompt_classifier",
    "Record": "nn.record",
    "RegardError": "base.errors",
    "Sampling": "tasks.search",
    "TextGenerator": "tasks.causal_lm.generator",
    "Transcriber": "tasks.transcription",
    "Translator": "tasks.translation.translator",
    "build": "models.build",
    "cost": "models.cost",
    "evaluate": "_api",
    "export_model": "exchange.export",
    "exportable_to": "exchange.exportable",
    "import_model": "exchange.importer",
    "learn_tokenizer": "text.learn",
    "list_presets": "config.codec",
    "load": "tasks.load",
    "load_audio_classifier": "tasks.load",
    "load_classifier": "tasks.load",
    "load_embedder": "tasks.load",
    "load_fill_mask": "tasks.load",
    "load_generator": "tasks.load",
    "load_image_captioner": "tasks.load",
    "load_image_classifier": "tasks.load",
    "load_image_generator": "tasks.load",
    "load_token_vectors": "tasks.token_vectors",
    "load_transcriber": "tasks.load",
    "load_translator": "tasks.load",
    "look_into": "look.build",
    "preset": "config.codec",
    "register": "nn.registry",
    "resume": "_api",
    "save": "store.save",
    "train": "_api",
    "tune": "_api",
}


def __getattr__(name: str) -> _Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'regard' has no attribute '{name}'")
    return getattr(_import_module(f"regard.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
