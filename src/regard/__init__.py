"""Regard: train, evaluate, inspect and run Transformers on your own text.

Public names are imported on first use, so that `import regard` is fast and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.base.errors import RegardError
    from regard.config.codec import preset
    from regard.config.exportable import exportable_to
    from regard.models.build import build
    from regard.models.cost import cost
    from regard.nn.record import Record
    from regard.pipeline.load import load
    from regard.train.start import resume, train

__version__ = "0.1.0"
__all__ = ["Record", "RegardError", "build", "cost", "exportable_to", "load", "preset", "resume", "train"]

_MODULES = {
    "Record": "regard.nn.record",
    "RegardError": "regard.base.errors",
    "build": "regard.models.build",
    "cost": "regard.models.cost",
    "exportable_to": "regard.config.exportable",
    "load": "regard.pipeline.load",
    "preset": "regard.config.codec",
    "resume": "regard.train.start",
}


def __getattr__(name: str) -> Any:
    if name == "train":
        return import_module("regard.train")  # a package that can be called
    if name not in _MODULES:
        raise AttributeError(f"module 'regard' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
