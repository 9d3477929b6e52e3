"""Exports of `regard train` (`export = [...]` in a run file, or --export), checked before training."""

from pathlib import Path
from typing import get_args

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.extras import install_command, list_missing
from regard.base.files import MANIFEST
from regard.cli.train_options import TrainCommandOptions
from regard.config import codec
from regard.config.run import ExportTarget
from regard.exchange.export import TARGETS, export_model
from regard.exchange.exportable import find_target_obstacles
from regard.store.export_folder import default_folder
from regard.training.options import RUN_FILE


def check_exports(options: TrainCommandOptions) -> None:
    """Raise an error for an export that would fail after training.

    Raises:
        RegardError: The target is unknown, a package is missing, the target does not support the model, or the folder
            exists.
    """
    run = options.read_run()
    for target in dict.fromkeys([*(() if run is None else run.export), *(options.export or ())]):
        if target not in get_args(ExportTarget):
            targets = ", ".join(get_args(ExportTarget))
            raise RegardError(f"There is no export target '{target}'.", hint=f"Use one of: {targets}.")
        extra = TARGETS[target].extra
        if extra is not None and (missing := list_missing(extra)):
            raise RegardError(f"--export {target} needs the package '{missing[0]}'.", hint=install_command(extra))
        if run is not None and (obstacles := find_target_obstacles(run.model, target)):
            hint = "Leave out this target, or change these model settings."
            raise RegardError(f"{target} cannot represent the model: {'; '.join(obstacles)}.", hint=hint)
        folder = options.folder
        if folder is not None and _is_taken(place := default_folder(folder, target)):
            raise RegardError(
                "The export folder exists already.", location=str(place), hint="Move or remove this folder."
            )


def export_run(folder: Path, options: TrainCommandOptions) -> None:
    """Export the best model of a finished run to every target, next to the run folder."""
    targets = dict.fromkeys([*codec.RUN_FILES.load(folder / RUN_FILE).export, *(options.export or ())])
    for target in targets:
        path, report = export_model(folder, target, replace=True)
        typer.echo(f"Exported: {path}: {report.summary}")
        for note in report.notes:
            typer.echo(f"- {note}")


def _is_taken(folder: Path) -> bool:
    """Whether a folder exists and is not an earlier export, which may be replaced."""
    return folder.exists() and not (folder / MANIFEST).is_file()
