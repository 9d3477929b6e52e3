"""Export of a model to other engines: the registry of targets, and the function that runs one of them.

A target is a function `export(model, folder, options)` in a module of this package. It reads the model folder `model`,
writes into the empty `folder`, and returns an `ExportReport`. `export_model` gives it a folder under a temporary name
and renames that folder when the export is complete, so a failed or killed export leaves no files behind.

To add a target, write its module and add a line to `TARGETS`. This module imports no torch: help stays fast.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from regard.base.arguments import as_path
from regard.base.errors import RegardError
from regard.base.files import AnyPath, backup_path, create_folder
from regard.base.progress import begin
from regard.store.export_folder import default_folder
from regard.store.model_path import MODEL, find_model


@dataclass(frozen=True)
class ExportOptions:
    """Options of all targets; a target ignores options that it does not use."""

    dtype: str | None = None
    """Number type of the exported weights, e.g. "float32" or "int8"; None: the target's default."""
    max_positions: int | None = None
    """Number of positions in an exported table of sinusoidal positions; None: the target's default."""
    architecture: str | None = None
    """Hugging Face architecture; None: the first one that can represent the model."""
    license: str | None = None
    """License of the model for its card, as the Hugging Face Hub spells it, e.g. "cc-by-4.0"."""
    runtime: Path | None = None
    """Folder of the npm package onnxruntime-web, for the target `web`."""


@dataclass(frozen=True)
class ExportReport:
    """Description of a finished export."""

    summary: str
    """One line: the format and the size."""
    notes: tuple[str, ...] = ()
    """What differs from the model in Regard, one sentence each."""


Exporter = Callable[[Path, Path, ExportOptions], ExportReport]


@dataclass(frozen=True)
class Target:
    """An engine or format to export to."""

    module: str
    """Module of `regard.exchange` with a function `export`."""
    purpose: str
    dtypes: tuple[str, ...]
    """Number types; the first one is the default."""
    extra: str | None = None
    """The extra of Regard with the packages that the export needs."""


TARGETS = {
    "huggingface": Target(
        "huggingface.write",
        "a folder for `transformers`, vLLM, llama.cpp and others",
        ("float32", "bfloat16", "float16"),
    ),
    "peft": Target(
        "peft", "the LoRA adapter of a run for `peft`, to load on the Hugging Face export of its parent", ("float32",)
    ),
    "onnx": Target("onnx.write", "graphs for onnxruntime", ("float32", "int8"), "onnx"),
    "web": Target("web.write", "a page that runs the model in the browser", ("int8", "float32"), "onnx"),
    "argos": Target(
        "argos.write", "a package for Argos Translate and LibreTranslate", ("float32", "int8"), "ctranslate2"
    ),
    "ctranslate2": Target(
        "ctranslate2",
        'a folder for CTranslate2, which `regard.load(..., engine="ctranslate2")` also runs',
        ("float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"),
        "ctranslate2",
    ),
}


def export_model(
    model: AnyPath,
    target: str,
    out: AnyPath | None = None,
    options: ExportOptions | None = None,
    *,
    replace: bool = False,
) -> tuple[Path, ExportReport]:
    """Export a model to another engine.

    Args:
        model: A model folder, or a run folder (its best model is exported).
        target: Name of the target, one of `TARGETS`.
        out: The folder to create. Default: see `regard.store.export_folder.default_folder`.
        options: Options of the targets.
        replace: Replace an older export.

    Returns:
        The created folder and the report.

    Raises:
        RegardError: The target cannot represent the model, or the folder exists.
    """
    path = find_model(as_path("model", model))
    from regard.config import codec  # pydantic, and torch in the exporters: only when needed
    from regard.exchange.rules import find_layer_obstacles

    options = options or ExportOptions()
    exporter = find_exporter(target, options)
    folder = default_folder(model, target) if out is None else Path(out)
    if folder.resolve() == path.resolve() or path.resolve() in folder.resolve().parents:
        raise RegardError(
            "The export would change the model folder.",
            location=str(folder),
            hint="Choose a folder elsewhere with --out.",
        )
    if folder.exists() and not replace:
        raise RegardError(
            "The folder already exists.", location=str(folder), hint="Choose another name (--out), or add --replace."
        )
    settings = codec.MODEL_FILES.load(path / MODEL)
    if recurrent := tuple(find_layer_obstacles(settings)):
        hint = "Run it with PyTorch: `regard translate`, `generate` or `serve`."
        raise RegardError(
            f"{target} cannot represent the model: {'; '.join(recurrent)}.", location=str(path), hint=hint
        )
    with create_folder(folder, replace=replace, backup=backup_path(folder)) as temporary_folder:
        begin(f"exporting to {target}")
        report = exporter(path, temporary_folder, options)
    return folder, report


def find_exporter(target: str, options: ExportOptions) -> Exporter:
    """Check the options and return the target's export function."""
    if target not in TARGETS:
        raise RegardError(f"There is no export target '{target}'.", hint=f"Use one of: {', '.join(TARGETS)}.")
    dtypes = TARGETS[target].dtypes
    if options.dtype is not None and options.dtype not in dtypes:
        raise RegardError(
            f"The target {target} has no number type '{options.dtype}'.", hint=f"Use one of: {', '.join(dtypes)}."
        )
    exporter: Exporter = import_module(f"regard.exchange.{TARGETS[target].module}").export
    return exporter
