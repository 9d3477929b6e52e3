"""The `regard` command: its subcommands, --version, and error messages without tracebacks."""

from typing import Annotated, Any

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251

import regard
from regard.base.errors import ConfigError, RegardError
from regard.cli import (
    caption,
    check,
    demo,
    embed,
    evaluate,
    export,
    fill,
    generate,
    import_model,
    info,
    label,
    look,
    model,
    neighbors,
    plan,
    prepare,
    score,
    serve,
    settings,
    tokenizer,
    train,
    transcribe,
    translate,
    tune,
)
from regard.cli.help import HelpCommand, HelpGroup, UsageError, explain_usage
from regard.cli.options import option

EXAMPLES = """
regard demo
regard train --source train.en --target train.de --out my-model
regard translate my-model "Where is Tom?"
"""
app = typer.Typer(
    name="regard",
    cls=HelpGroup,
    help="Train, evaluate, inspect and run Transformers on your own text.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _add(panel: str, module: Any, function: Any, name: str | None = None) -> None:
    app.command(name, cls=HelpCommand, epilog=getattr(module, "EXAMPLES", None), rich_help_panel=panel)(function)


_add("Start", demo, demo.demo)
_add("Start", info, info.info)
_add("Data", check, check.check)
app.add_typer(tokenizer.app, name="tokenizer", rich_help_panel="Data")
_add("Data", prepare, prepare.prepare)
_add("Train", train, train.train)
_add("Train", tune, tune.tune)
_add("Train", plan, plan.plan)
_add("Train", settings, settings.settings)
app.add_typer(model.app, name="model", rich_help_panel="Train")
_add("Use", translate, translate.translate)
_add("Use", transcribe, transcribe.transcribe)
_add("Use", caption, caption.caption)
_add("Use", generate, generate.generate)
_add("Use", fill, fill.fill)
_add("Use", label, label.label)
_add("Use", embed, embed.embed)
_add("Use", neighbors, neighbors.neighbors)
_add("Serve", serve, serve.serve)
_add("Inspect", look, look.look)
_add("Measure", evaluate, evaluate.evaluate)
_add("Measure", score, score.score)
_add("Exchange", export, export.export)
_add("Exchange", import_model, import_model.import_model, "import")


def run() -> int:
    """Run the command and return its exit code; errors are printed without a traceback.

    Exit codes: 1 for a RegardError, 2 for a command line that cannot be parsed.
    """
    try:
        code = app(prog_name="regard", standalone_mode=False)
    except RegardError as error:
        _print_error(error)
        return 1
    except OSError as error:  # a file that cannot be read or written: no fault of Regard
        fix = "Check the path, its permissions and the free space."
        _print_error(RegardError(f"{error.strerror or error}.", where=error.filename and str(error.filename), fix=fix))
        return 1
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help
            typer.echo(error)
        else:
            _print_error(explain_usage(error))
        return 2
    return code if isinstance(code, int) else 0


def _print_error(error: RegardError) -> None:
    if isinstance(error, ConfigError) and error.fix is None:
        error.fix = "`regard settings` lists all settings, their values and defaults."
    Console(stderr=True).print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"regard {regard.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        option("Show the version and exit.", "--version", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Train, evaluate, inspect and run Transformers on your own text."""
