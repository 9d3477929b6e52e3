"""A loaded model folder: the pipeline with its adapters, warmed up and packed."""

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.exchange.engine_cache import Announce, load_on_engine
from regard.serve.settings import ServeConfig
from regard.store.adapter_folder import read_adapter_settings
from regard.store.calibration import read_temperature
from regard.store.export_folder import Engine, hash_of_weights, is_export, read_export_info
from regard.store.model_path import find_model
from regard.tasks.capabilities import EMBEDS, Capability, find_capabilities
from regard.tasks.pipeline import Pipeline

logger = logging.getLogger("regard.serve")


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A loaded model folder."""

    pipeline: Pipeline
    capabilities: tuple[Capability[Any], ...]
    version: int
    """Modification time of the folder, in nanoseconds."""
    prepared: ExitStack
    """Keeps the weights of a PyTorch model packed; otherwise every batch would pack them again."""
    has_adapters: bool

    def activate(self, adapter: str | None) -> None:
        """Switch to an adapter, or None; merges and packs the weights again if it changed."""
        if self.has_adapters:
            self.pipeline.adapters.activate(adapter)

    @property
    def has_packed_weights(self) -> bool:
        """Whether a running stream no longer needs its adapter, because it reads its own packed copy."""
        return self.has_adapters and self.pipeline.has_packed_weights


def load_model(folder: Path, engine: Engine, adapters: Mapping[str, Path]) -> LoadedModel:
    """Load a model folder and warm it up, so that the first request is not slow."""
    if adapters and engine == "auto" and not is_export(folder):
        engine = "torch"
        logger.info("Running %s in PyTorch, because CTranslate2 does not support adapters", folder)

    def display() -> AbstractContextManager[Announce]:
        logger.info("Exporting %s to CTranslate2; this takes up to two minutes, only at the first start", folder)
        return nullcontext(logger.info)

    pipeline: Any = load_on_engine(folder, engine, display, adapters=adapters)
    capabilities = find_capabilities(pipeline)
    if not any(capability.hint for capability in capabilities):
        ability = " or ".join(capability.name for capability in capabilities) or f"are a {pipeline.kind}"
        message = f"The server has no route for models that {ability}."
        raise RegardError(message, location=str(folder), hint=f"Use `regard {pipeline.command}`.")
    if capabilities[0].hint is None:  # its own task has no route, but every text encoder can embed
        pipeline, capabilities = pipeline.embedder, (EMBEDS,)
    path, prepared = find_model(folder), ExitStack()
    prepared.enter_context(pipeline.prepared())
    pipeline.temperature = read_temperature(path)
    pipeline.warm_up()
    return LoadedModel(pipeline, capabilities, path.stat().st_mtime_ns, prepared, bool(adapters))


def assign_adapters(settings: ServeConfig) -> dict[str, dict[str, Path]]:
    """Return the adapters of each model by name; an adapter belongs to the model with its parent's weights.

    Raises:
        RegardError: An adapter has the name of a model, no served model matches its parent, or the engine does not
            support adapters.
    """
    adapters: dict[str, dict[str, Path]] = {name: {} for name in settings.models}
    if settings.adapters and settings.engine.startswith("ctranslate2"):
        name, folder = next(iter(settings.adapters.items()))
        hint = f"Use --engine torch, or serve the adapter as a separate, merged model: {name}={folder}."
        raise RegardError("CTranslate2 does not support adapters.", location=f"the adapter '{name}'", hint=hint)
    hashes = {name: _hash_of_model(folder) for name, folder in settings.models.items()} if settings.adapters else {}
    for name, folder in settings.adapters.items():
        if name in settings.models:
            hint = "Rename the adapter: --adapter NAME=FOLDER."
            raise RegardError(f"A model and an adapter have the name '{name}'.", hint=hint)
        stored = read_adapter_settings(folder)
        model = next((model for model, sha256 in hashes.items() if sha256 == stored.parent_sha256), None)
        if model is None:
            message = f"The adapter '{name}' does not match the weights of {', '.join(settings.models)}."
            raise RegardError(message, location=str(folder), hint=f"Serve it with its parent, {stored.parent}.")
        adapters[model][name] = folder
    return adapters


def _hash_of_model(folder: Path) -> str:
    """Return the sha256 of a model's weights, or of the weights that an export was made from."""
    return read_export_info(folder).weights if is_export(folder) else hash_of_weights(find_model(folder))
