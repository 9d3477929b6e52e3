"""The `regard` command: its subcommands, --version, and error messages without tracebacks."""

import sys
from typing import Annotated

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251

import regard
from regard.base.errors import RegardError
from regard.cli import (
    check,
    evaluate,
    fill,
    generate,
    info,
    label,
    model,
    prepare,
    score,
    settings,
    tokenizer,
    train,
    translate,
)

app = typer.Typer(
    name="regard",
    help="Train, evaluate, inspect and run Transformers on your own text.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(model.app, name="model")
app.add_typer(tokenizer.app, name="tokenizer")
app.command()(check.check)
app.command()(prepare.prepare)
app.command()(train.train)
app.command()(settings.settings)
app.command()(translate.translate)
app.command()(generate.generate)
app.command()(fill.fill)
app.command()(label.label)
app.command()(score.score)
app.command()(evaluate.evaluate)
app.command()(info.info)


def main() -> None:
    """Run the command; a RegardError is printed without a traceback and exits with code 1."""
    try:
        app()
    except RegardError as error:
        Console(stderr=True).print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(1)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"regard {regard.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Train, evaluate, inspect and run Transformers on your own text."""
