"""Models and runs as TOML, and the presets that come with Regard.

>>> from regard.config.codec import preset
>>> preset("tiny", {"encoder.layers": 2}).encoder.layers
2
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.config.model import AnyModel, ModelConfig
from regard.config.run import Run
from regard.config.toml_file import SettingsFile, TomlTable, parse_settings, suggest, to_dict, with_changes

__all__ = [
    "TomlTable",
    "dumps",
    "load",
    "parse",
    "parse_settings",
    "preset",
    "list_presets",
    "RUN_FILES",
    "save",
    "schema",
]


def list_presets() -> list[str]:
    """The names of the presets that come with Regard."""
    folder = files("regard.config") / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def preset(name: str, changes: Mapping[str, Any] | None = None) -> AnyModel:
    """The model of a preset, with `{"a.b": value}` changes."""
    if name not in list_presets():
        raise RegardError(f"There is no preset '{name}'.", fix=suggest(name, list_presets()))
    text = (files("regard.config") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return MODEL_FILES.parse(tomllib.loads(text), changes, where=f"preset {name}")


def load(path: Path, changes: Mapping[str, Any] | None = None) -> AnyModel:
    """The model that a TOML file describes, with `{"a.b": value}` changes."""
    return MODEL_FILES.load(path, changes)


def save(config: AnyModel, path: Path) -> None:
    """Write the model to a TOML file, whole or not at all."""
    MODEL_FILES.save(config, path)


def dumps(config: AnyModel) -> str:
    """The model as TOML: plain values first, then its tables; `parse` gives the same model back."""
    return MODEL_FILES.dumps(config)


def parse(table: TomlTable, *, where: str | None = None) -> AnyModel:
    """A checked model from plain tables; raises one `ConfigError` that names every fault."""
    return MODEL_FILES.parse(table, where=where)


def schema() -> str:
    """The JSON schema of `model.toml`, for editors that complete and check."""
    return MODEL_FILES.schema()


def _expand_preset(table: TomlTable) -> TomlTable:
    model = table.get("model")
    if not isinstance(model, dict) or not isinstance(name := model.get("preset"), str):
        return table
    changes = {key: value for key, value in _flatten(model) if key != "preset"}
    return {**table, "model": with_changes(to_dict(preset(name)), changes)}


def _flatten(table: TomlTable, prefix: str = "") -> list[tuple[str, Any]]:
    """Tables inside tables as dotted keys.

    >>> _flatten({"width": 2, "encoder": {"layers": 3}})
    [('width', 2), ('encoder.layers', 3)]
    """
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        path = f"{prefix}{key}"
        pairs += _flatten(value, f"{path}.") if isinstance(value, dict) else [(path, value)]
    return pairs


MODEL_FILES: SettingsFile[AnyModel] = SettingsFile(ModelConfig)
"""Model files (`model.toml`)."""
RUN_FILES: SettingsFile[Run] = SettingsFile(Run, _expand_preset)
"""Run files (`run.toml`). Their model may be a preset with changes: `model = {preset = "tiny", width = 256}`."""
