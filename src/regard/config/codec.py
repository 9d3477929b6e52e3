"""Model files, run files and the built-in presets.

>>> from regard.config.codec import preset
>>> preset("tiny", {"encoder.layers": 2}).encoder.layers
2
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, overload

from regard.base.arguments import check_type
from regard.base.errors import RegardError
from regard.config.model import (
    AnyModelConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from regard.config.toml_file import SettingsFile, TomlTable, suggest, to_dict, with_changes

if TYPE_CHECKING:
    from regard.config.run import RunConfig


EncoderDecoderPreset = Literal[
    "bart", "base", "big", "image-to-text", "lecture", "mini", "rnnsearch", "small", "speech-to-text", "t5", "tiny"
]
DecoderOnlyPreset = Literal["gpt2", "image-gpt", "llama", "lm-medium", "lm-small", "lstm"]
EncoderOnlyPreset = Literal["audio-encoder", "bert", "encoder-small", "encoder-tiny", "roberta", "vit", "word2vec"]


def list_presets() -> list[str]:
    """Return the names of the built-in presets."""
    folder = files("regard.config") / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


@overload
def preset(name: EncoderDecoderPreset, changes: Mapping[str, Any] | None = None) -> EncoderDecoderConfig: ...
@overload
def preset(name: DecoderOnlyPreset, changes: Mapping[str, Any] | None = None) -> DecoderOnlyConfig: ...
@overload
def preset(name: EncoderOnlyPreset, changes: Mapping[str, Any] | None = None) -> EncoderOnlyConfig: ...
@overload
def preset(name: str, changes: Mapping[str, Any] | None = None) -> AnyModelConfig: ...
def preset(name: str, changes: Mapping[str, Any] | None = None) -> AnyModelConfig:
    """Return the settings of a preset.

    Args:
        name: One of `list_presets()`.
        changes: Settings to change, by dotted key: `{"encoder.layers": 2}`.

    Raises:
        RegardError: If there is no such preset.
        ConfigError: If a change is not valid.
    """
    check_type("name", name, str, "the name of a preset")
    check_type("changes", changes, Mapping | None, "settings by dotted key, for example {'encoder.layers': 2}")
    if name not in list_presets():
        raise RegardError(f"There is no preset '{name}'.", hint=suggest(name, list_presets()))
    text = (files("regard.config") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return MODEL_FILES.parse(tomllib.loads(text), changes, location=f"preset {name}")


def _fill_kinds(table: TomlTable) -> TomlTable:
    """Return the table of a model in which stacks without a kind, the only one of earlier versions, have it."""
    stacks = {name: table[name] for name in ("encoder", "decoder") if isinstance(table.get(name), dict)}
    return table | {name: {"kind": "attention"} | stack for name, stack in stacks.items()}


def _replace_policies(table: TomlTable) -> TomlTable:
    """Return the table of a run in which the spike policies of earlier versions, skip and rewind, are recover."""
    train = table.get("train")
    if not isinstance(train, dict) or not isinstance(spikes := train.get("spikes"), dict):
        return table
    if spikes.get("kind") not in ("skip", "rewind") and "max_spikes" not in spikes:
        return table
    kind = "stop" if spikes.get("kind") == "stop" else "recover"
    kept = {key: value for key, value in spikes.items() if key not in ("max_spikes", "rewind_steps")}
    return {**table, "train": {**train, "spikes": kept | {"kind": kind}}}


def _prepare_run(table: TomlTable) -> TomlTable:
    """Return the table of a run with the settings of the preset that its model names, and the kinds of stacks."""
    table = _replace_policies(table)
    model = table.get("model")
    if not isinstance(model, dict):
        return table
    if isinstance(name := model.get("preset"), str):
        changes = {key: value for key, value in _flatten(model) if key != "preset"}
        model = with_changes(to_dict(preset(name)), changes)
    return {**table, "model": _fill_kinds(model)}


def _flatten(table: TomlTable, prefix: str = "") -> list[tuple[str, Any]]:
    """Flatten nested tables into dotted keys.

    >>> _flatten({"d_model": 2, "encoder": {"layers": 3}})
    [('d_model', 2), ('encoder.layers', 3)]
    """
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        path = f"{prefix}{key}"
        pairs += _flatten(value, f"{path}.") if isinstance(value, dict) else [(path, value)]
    return pairs


MODEL_FILES: SettingsFile[AnyModelConfig] = SettingsFile(ModelConfig, _fill_kinds)
"""Model files (`model.toml`)."""
RUN_FILES: "SettingsFile[RunConfig]" = SettingsFile("regard.config.run:RunConfig", _prepare_run)
"""Run files (`run.toml`). Their model may be a preset with changes: `model = {preset = "tiny", d_model = 256}`.

Reading a model does not import the settings of training.
"""
