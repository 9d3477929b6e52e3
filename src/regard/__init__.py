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
    from regard.base.errors import RegardError
    from regard.config.codec import preset
    from regard.config.exportable import exportable_to
    from regard.exchange.export import export_model
    from regard.exchange.importer import import_model
    from regard.look.build import look_into
    from regard.models.build import build
    from regard.models.cost import cost
    from regard.nn.record import Record
    from regard.pipeline.classifier import Classifier
    from regard.pipeline.embedder import Embedder
    from regard.pipeline.fill_mask import FillMask
    from regard.pipeline.generator import TextGenerator
    from regard.pipeline.load import (
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
    from regard.pipeline.prompt_classifier import PromptClassifier
    from regard.pipeline.token_vectors import load_token_vectors
    from regard.pipeline.translator import Translator
    from regard.training.api import resume, train, tune

__all__ = [
    "Classifier",
    "Embedder",
    "FillMask",
    "PromptClassifier",
    "Record",
    "RegardError",
    "TextGenerator",
    "Translator",
    "build",
    "cost",
    "export_model",
    "exportable_to",
    "import_model",
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
    "resume",
    "train",
    "tune",
]
_MODULES = {
    "Classifier": "pipeline.classifier",
    "Embedder": "pipeline.embedder",
    "FillMask": "pipeline.fill_mask",
    "PromptClassifier": "pipeline.prompt_classifier",
    "Record": "nn.record",
    "RegardError": "base.errors",
    "TextGenerator": "pipeline.generator",
    "Translator": "pipeline.translator",
    "build": "models.build",
    "cost": "models.cost",
    "export_model": "exchange.export",
    "exportable_to": "config.exportable",
    "import_model": "exchange.importer",
    "load": "pipeline.load",
    "load_classifier": "pipeline.load",
    "load_embedder": "pipeline.load",
    "load_image_captioner": "pipeline.load",
    "load_image_classifier": "pipeline.load",
    "load_image_generator": "pipeline.load",
    "load_audio_classifier": "pipeline.load",
    "load_transcriber": "pipeline.load",
    "load_fill_mask": "pipeline.load",
    "load_generator": "pipeline.load",
    "load_translator": "pipeline.load",
    "load_token_vectors": "pipeline.token_vectors",
    "look_into": "look.build",
    "preset": "config.codec",
    "resume": "training.api",
    "train": "training.api",
    "tune": "training.api",
}


def __getattr__(name: str) -> _Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'regard' has no attribute '{name}'")
    return getattr(_import_module(f"regard.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
