"""Base of the CTranslate2 pipelines: beam search runs in CTranslate2, everything else in PyTorch.

The PyTorch model is loaded on first use: for searches other than beam search, constraints, streaming, attention, draft
models, and texts that exceed the exported positions. Until then PyTorch is not imported. An export loaded without its
model folder has no PyTorch model, so such calls raise an error.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.base.errors import RegardError
from regard.tasks.ctranslate2 import NAME
from regard.tasks.pipeline import Pipeline

if TYPE_CHECKING:
    import torch

    from regard.data.example import Example


class LazyTorch:
    """The PyTorch pipeline behind an engine, loaded on first use."""

    def __init__(self, folder: Path, load: Callable[[], Pipeline] | None) -> None:
        self._folder, self._load = folder, load
        self._pipeline: Pipeline | None = None

    @property
    def is_available(self) -> bool:
        """Whether the folder has a PyTorch model."""
        return self._load is not None

    def require(self, reason: str) -> Any:
        """Return the PyTorch pipeline.

        Args:
            reason: Why it is needed, for the error message if there is none.
        """
        if self._load is None:
            hint = "Load the model folder instead of the export: regard.load(folder, engine='ctranslate2')."
            raise RegardError(f"{reason}, and the export has no PyTorch model.", location=str(self._folder), hint=hint)
        if self._pipeline is None:
            self._pipeline = self._load()
        return self._pipeline


class OnCTranslate2:
    """Mixin with the engine and the PyTorch model behind it."""

    settings: Any
    engine: Any
    _device: str
    _torch: LazyTorch

    @property
    def engine_name(self) -> str:
        """The engine: "ctranslate2", or "ctranslate2-int8"."""
        dtype = self.engine.info.dtype
        return NAME if dtype == "float32" else f"{NAME}-{dtype}"

    @property
    def has_torch_model(self) -> bool:
        """Whether there is a PyTorch model, which streaming and alignment need."""
        return self._torch.is_available

    @property
    def in_torch(self) -> Any:
        """The PyTorch pipeline."""
        return self._torch.require("This needs the PyTorch model")

    @property
    def model(self) -> Any:
        """The PyTorch model."""
        return self.in_torch.model

    @property
    def device(self) -> "torch.device":
        """Device of the engine."""
        import torch

        return torch.device(self._device)

    @cached_property
    def num_parameters(self) -> int:
        """Number of model parameters; shared parameters count once."""
        from regard.store.size_check import count_parameters  # builds layers of PyTorch on the meta device

        return count_parameters(self.settings)

    def examples(self, example: "Example") -> "Iterable[Example]":
        """Convert a test example into the examples to evaluate, as defined by the model's task."""
        from regard.tasks.task import find_task  # imports PyTorch

        return find_task(self.settings.task).examples(example)

    def prepared(self) -> AbstractContextManager[None]:
        """Return a null context: the engine needs no preparation."""
        return nullcontext()

    def _describe(self) -> list[str]:
        return [f"ctranslate2 {self.engine.compute_type}"]
