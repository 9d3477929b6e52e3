"""`regard import`: convert a model from another library."""

from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import quote_path
from regard.cli.options import INPUT_PANEL, OUTPUT_PANEL, check_output_folder, option
from regard.cli.progress import show_stages
from regard.data.readers.text_files import is_url
from regard.exchange.hub import is_hub_address

EXAMPLES = """
regard import all-MiniLM-L6-v2 --out minilm
regard import SmolLM2.gguf --out smollm
regard import hf://sentence-transformers/all-MiniLM-L6-v2 --out minilm
regard import my-adapter --parent minilm --out my-classifier
regard import s3://bucket/my-run --out my-run
"""


def import_model(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Hugging Face folder (safetensors), a GGUF file (Llama), hf://OWNER/NAME[@REVISION], "
            "a LoRA adapter of Regard, or the URL of a run (`train.upload`).",
        ),
    ],
    out: Annotated[
        Path, option("New model folder.", metavar="FOLDER", panel=OUTPUT_PANEL, callback=check_output_folder)
    ],
    parent: Annotated[
        Path | None, option("Model that the adapter was trained for.", "--parent", metavar="MODEL", panel=INPUT_PANEL)
    ] = None,
    replace: Annotated[bool, option("Replace an older folder.", "--replace", panel=OUTPUT_PANEL)] = False,
) -> None:
    """Import a model from another library.

    Reads safetensors and GGUF only and rejects files that could execute code. Also rejects models with components that
    Regard does not support.
    """
    is_remote = is_hub_address(source) or is_url(source)
    if parent is not None and is_remote:
        raise RegardError("--parent needs an adapter in a local folder.", location=source, hint="Download it first.")
    if is_remote and not is_hub_address(source):
        if replace:
            hint = "Choose another folder, or remove the old one."
            raise RegardError("--replace does not apply to a run.", location=str(out), hint=hint)
        from regard.training.upload import download_run  # imports torch: only when needed

        download_run(source, out)
        typer.echo(f"Continue with: regard train --resume {quote_path(out)}")
        return
    if not is_remote and not Path(source).exists():
        hint = "Give a Hugging Face folder, a GGUF file, or an address hf://OWNER/NAME."
        raise RegardError("There is no such file or folder.", location=source, hint=hint)
    if parent is None and (Path(source) / "adapter.toml").is_file():
        hint = "Give the model that it was trained for: --parent MODEL"
        raise RegardError("This is a LoRA adapter, which needs its parent.", location=source, hint=hint)
    if parent is not None:
        from regard.store.adapter_folder import merge_adapter  # imports torch: only when needed

        merged = merge_adapter(Path(source), parent, out, replace=replace)
        count = sum(parameter.numel() for parameter in merged.model.parameters())
        typer.echo(f"{out}: {parent} with the adapter {source}, {count:,} parameters, task '{merged.settings.task}'.")
        return
    from regard.exchange.importer import import_model as read_and_write  # imports torch: only when needed

    with show_stages():
        model = read_and_write(source, out, replace=replace)
    count = sum(tensor.numel() for tensor in model.weights.values())
    typer.echo(f"{out}: {model.origin.architecture}, {count:,} parameters, task '{model.settings.task}'.")
