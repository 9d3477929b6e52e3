"""`regard model`: inspect an architecture (settings, cost, export targets) and set a model's languages."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251
from rich.table import Table  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.console import make_console
from regard.cli.help import HelpCommand, HelpGroup
from regard.cli.options import StringList, option, settings_option
from regard.cli.settings import EXAMPLES as SETTINGS_EXAMPLES
from regard.cli.settings import settings
from regard.config import codec
from regard.config.model import AnyModelConfig
from regard.config.toml_file import parse_settings, suggest
from regard.exchange.exportable import exportable_to

EXAMPLES = """
regard model presets
regard model settings train.schedule
regard model show tiny --set encoder.layers=2
regard model cost base --batch-size 32
regard model set-languages my-model en de
"""
app = typer.Typer(
    cls=HelpGroup,
    help="List all settings and presets; show the cost and export targets of a model.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)
command = partial(app.command, cls=HelpCommand)

command(epilog=SETTINGS_EXAMPLES)(settings)
PresetArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Preset name, or path to a model.toml.")]
SettingsOption = Annotated[StringList, settings_option("encoder.layers=2")]


@command(epilog="regard model presets")
def presets() -> None:
    """List the model presets with their architecture and number of parameters."""
    from regard.models.cost import cost  # imports torch: only when needed

    table = Table(
        "preset", "family", "layers", "d_model", "norm or cell", "position", "parameters", box=None, pad_edge=False
    )
    for name in codec.list_presets():
        model = codec.preset(name)
        stack = model.encoder if model.family == "encoder_only" else model.decoder
        layers = f"{model.encoder.layers}+{stack.layers}" if model.family == "encoder_decoder" else str(stack.layers)
        size = cost(model, batch_size=1, source=1, target=1).parameters.total()
        if stack.kind == "recurrent":
            kinds: tuple[str, str] = (stack.cell, "")
        else:
            kinds = (f"{stack.norm_order} {stack.norm.kind}", stack.position.kind)
        table.add_row(name, model.family, layers, str(model.d_model), *kinds, f"{size:,}")
    make_console().print(table)


@command(epilog="regard model show tiny --set encoder.layers=2")
def show(model: PresetArgument, settings: SettingsOption = None) -> None:
    """Print the full configuration of a model as TOML."""
    typer.echo(codec.MODEL_FILES.dumps(_load_model(model, settings)), nl=False)


@command(epilog="regard model exports tiny")
def exports(model: PresetArgument, settings: SettingsOption = None) -> None:
    """List the engines that can represent this model exactly, and why the others cannot."""
    for verdict in exportable_to(_load_model(model, settings)):
        typer.echo(f"{'yes' if verdict.is_exact else 'no '}  {verdict.target}")
        for obstacle in verdict.obstacles:
            typer.echo(f"       - {obstacle}")


@command(epilog="regard model cost base --batch-size 32 --source 40 --target 40")
def cost(
    model: PresetArgument,
    settings: SettingsOption = None,
    batch_size: Annotated[int, option("Batch size.", min=1)] = 1,
    source: Annotated[int, option("Source length: encoder or prefix positions.", min=0)] = 100,
    target: Annotated[int, option("Target length: decoder tokens.", min=0)] = 100,
) -> None:
    """Estimate parameters, FLOPs and memory, component by component."""
    from regard.models import cost as costs  # imports torch: only when needed

    config = _load_model(model, settings)
    if config.family == "encoder_only":
        target = 0
    if config.family == "decoder_only" and config.prefix is None:
        source = 0
    model_cost = costs.cost(config, batch_size=batch_size, source=source, target=target)
    typer.echo(f"batch size {batch_size}, source length {source}, target length {target}, float32\n")
    table = Table("", "", box=None, pad_edge=False, show_header=False)
    table.columns[1].justify = "right"
    for name, parts, unit in (
        ("parameters", model_cost.parameters, ""),
        ("training step (forward and backward)", model_cost.training, "FLOP"),
        ("decoding with KV cache", model_cost.decoding, "FLOP"),
        ("decoding without KV cache", model_cost.decoding_uncached, "FLOP"),
        ("activations stored for the backward pass", model_cost.activations, "B"),
        ("attention weights of one layer, if materialized", model_cost.attention_weights, "B"),
        ("KV cache", model_cost.kv_cache, "B"),
        ("sequential steps of a forward pass", model_cost.sequential, ""),
    ):
        if parts.total():
            table.add_row(name, _format_quantity(parts.total(), unit), style="bold")
        for part, count in parts.items():
            if count:
                table.add_row(f"  {part}", _format_quantity(count, unit))
    make_console().print(table)


@command(name="set-languages", epilog="regard model set-languages my-model en de")
def set_languages(
    folder: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder, or run folder (its best model).")],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Code of the source language, e.g. en.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Code of the target language, e.g. de.")],
) -> None:
    """Set the languages of a trained translator, for the server and for exports. The weights do not change."""
    from regard.store import model_folder  # imports torch: only when needed

    typer.echo(f"{model_folder.set_languages(folder, (source, target))}: {source} to {target}")


@command(epilog="regard model schema > model.schema.json")
def schema() -> None:
    """Print the JSON schema of model.toml, for completion and validation in editors."""
    typer.echo(codec.MODEL_FILES.schema(), nl=False)


def _load_model(name: str, settings: list[str] | None) -> AnyModelConfig:
    changes = parse_settings(settings or [])
    if name in codec.list_presets():
        return codec.preset(name, changes)
    path = Path(name)
    if path.is_dir():
        path = path / "model.toml"
    if not path.is_file():
        raise RegardError(
            f"'{name}' is neither a preset nor a file.",
            hint=suggest(name, codec.list_presets()),
        )
    return codec.MODEL_FILES.load(path, changes)


def _format_quantity(count: float, unit: str) -> str:
    for prefix in ("", "k", "M", "G", "T"):
        if count < 1000 or prefix == "T":
            break
        count /= 1000
    number = f"{count:.0f}" if count >= 100 or not prefix else f"{count:.1f}"
    return f"{number} {prefix}{unit}".rstrip()
