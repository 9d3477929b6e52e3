"""Settings that may change when a run is resumed, and how changes are reported."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.formatting import truncate
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.config.toml_file import TomlTable, to_dict
from regard.models.build import build

MISSING = "(not set)"
# Settings that determine the tokens in the folder; subword noise is applied later and may change.
TOKEN_SETTINGS = ("data.train", "data.validation", "data.held_out", "distillation", "tokenizer.")
CHANGEABLE_TOKEN_SETTINGS = ("tokenizer.dropout", "tokenizer.sampling")
LENGTH_SETTINGS = ("train.steps", "train.minutes", "train.max_steps")  # --steps and --more change them
PROCESS_SETTINGS = "parallel."  # a run may resume with any number of processes
FREE_SETTINGS = ("model.languages", "train.film_points", "train.upload")  # they do not affect the weights


def differences(before: TomlTable, now: TomlTable) -> Iterator[tuple[str, Any, Any]]:
    """List every setting that differs: its path, the old and the new value.

    >>> list(differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}))
    [('a.b', 1, 3)]
    """
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key, MISSING), now.get(key, MISSING)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from ((f"{key}.{path}", old_value, new_value) for path, old_value, new_value in differences(old, new))
        elif old != new:
            yield key, old, new


def check_changes(
    before: TomlTable, new_run: RunConfig, is_accepted: bool, *, is_extended: bool, location: str
) -> None:
    """Raise RegardError for changed settings that cannot change or that the user has not accepted."""
    before = to_dict(RUN_FILES.parse(before, location=location))  # fills settings that an older version lacked
    ignored = {*FREE_SETTINGS, *(LENGTH_SETTINGS if is_extended else ())}
    changed = [
        difference
        for difference in differences(before, to_dict(new_run))
        if difference[0] not in ignored and not difference[0].startswith(PROCESS_SETTINGS)
    ]
    token_changes = [
        difference
        for difference in changed
        if difference[0].startswith(TOKEN_SETTINGS) and difference[0] not in CHANGEABLE_TOKEN_SETTINGS
    ]
    if token_changes:
        listing = _format_changes(token_changes)
        raise RegardError(
            f"Cannot resume: these settings changed, but the data was tokenized with the old values:\n{listing}",
            location=location,
            hint="Undo the changes, or start a new run.",
        )
    if tuning_changes := [difference for difference in changed if difference[0].startswith("finetune")]:
        raise RegardError(
            f"Cannot resume with another parent or other trained parameters:\n{_format_changes(tuning_changes)}",
            location=location,
            hint="Undo the changes, or start a new run.",
        )
    model_changes = [difference for difference in changed if difference[0].startswith("model.")]
    if model_changes and _weight_shapes(RUN_FILES.parse(before, location=location)) != _weight_shapes(new_run):
        raise RegardError(
            f"Cannot resume: the saved weights do not fit the model settings:\n{_format_changes(model_changes)}",
            location=location,
            hint="Undo the changes, or start a new run.",
        )
    if changed and not is_accepted:
        raise RegardError(
            f"The settings differ from the run's settings:\n{_format_changes(changed)}",
            location=location,
            hint="Undo the changes, or accept them with --force.",
        )


def _weight_shapes(run: RunConfig) -> dict[str, torch.Size]:
    with torch.device("meta"):
        return {name: tensor.shape for name, tensor in build(run.model).state_dict().items()}


def _format_changes(changed: Sequence[tuple[str, Any, Any]]) -> str:
    lines = [
        f"  - {path}: was {truncate(repr(old), 80)}, is {truncate(repr(new), 80)}"
        for path, old, new in changed[: limits.MAX_REPORTED]
    ]
    return "\n".join([*lines, *([f"  - and {len(changed) - len(lines):,} more"] if len(changed) > len(lines) else [])])
