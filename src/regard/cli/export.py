"""`regard export`: write a model for another engine."""

from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.options import OUTPUT_PANEL, ModelArgument, check_output_folder, option
from regard.cli.progress import show_stages
from regard.exchange.export import TARGETS, ExportOptions, export_model
from regard.exchange.hub import is_hub_address, publish_model

EXAMPLES = """
regard export my-model --to huggingface
regard export my-model --to huggingface --type bfloat16 --out for-the-hub
regard export my-model --to web --runtime node_modules/onnxruntime-web
regard export my-model --to hf://anna/en-de --license cc-by-4.0
"""


def export(
    folder: ModelArgument,
    to: Annotated[
        str,
        option(
            f"Engine or format: {', '.join(TARGETS)}; or hf://OWNER/NAME to upload to the Hugging Face Hub.",
            metavar="TARGET",
            panel=OUTPUT_PANEL,
        ),
    ],
    out: Annotated[
        Path | None,
        option(
            "New folder. Default: MODEL-TARGET next to MODEL.",
            metavar="FOLDER",
            panel=OUTPUT_PANEL,
            callback=check_output_folder,
        ),
    ] = None,
    replace: Annotated[bool, option("Replace an older export.", "--replace", panel=OUTPUT_PANEL)] = False,
    dtype: Annotated[
        str | None,
        option("Number type of the weights, e.g. float32, bfloat16, int8.", "--type", metavar="TYPE"),
    ] = None,
    max_positions: Annotated[
        int | None,
        option("Number of positions in exported sinusoidal position tables.", min=1),
    ] = None,
    architecture: Annotated[
        str | None,
        option("Hugging Face architecture, if several can represent the model.", metavar="NAME"),
    ] = None,
    license_name: Annotated[
        str | None, option("License for the model card, e.g. cc-by-4.0.", "--license", metavar="NAME")
    ] = None,
    runtime: Annotated[
        Path | None,
        option("Folder of the npm package onnxruntime-web (target web).", metavar="FOLDER"),
    ] = None,
) -> None:
    """Export a model to another engine.

    The export is atomic: the folder appears under its final name only when it is complete.
    """
    options = ExportOptions(
        dtype=dtype, max_positions=max_positions, architecture=architecture, license=license_name, runtime=runtime
    )
    with show_stages():
        if is_hub_address(to):
            if out is not None or replace:
                hint = "Leave out --out and --replace: the Hub keeps every version."
                raise RegardError("An upload writes no folder.", location=to, hint=hint)
            place, report = to, publish_model(folder, to, options)
        else:
            path, report = export_model(folder, to, out, options, replace=replace)
            place = str(path)
    typer.echo(f"{place}: {report.summary}")
    for note in report.notes:
        typer.echo(f"- {note}")
