"""The `regard` command: its subcommands, --version, and error messages without tracebacks."""

from importlib import import_module
from typing import Annotated, Any

import typer  # noqa: TID251
import typer.main  # noqa: TID251

from regard.base.errors import ConfigError, RegardError
from regard.base.version import __version__
from regard.cli.help import HelpCommand, HelpGroup, UsageError, explain_usage
from regard.cli.options import option

EXAMPLES = """
regard demo
regard train --source train.en --target train.de --out my-model
regard translate my-model "Where is Tom?"
"""
COMMANDS = {  # by heading in the help; modules are named after their command, except `import`, a keyword
    "Start": ("demo", "info", "lectures"),
    "Train": ("check", "train", "tune", "model"),
    "Use": ("translate", "generate", "predict", "embed", "serve"),
    "Inspect": ("evaluate", "look", "blame"),
    "Exchange": ("export", "import"),
    "Advanced": ("plan", "prepare", "tokenizer"),
}


class CommandGroup(HelpGroup):
    """Command group that imports each command's module on first use, because some imports are slow."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [name for names in COMMANDS.values() for name in names]

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return the command with this name, or None."""
        if name in self.list_commands(ctx) and name not in self.commands:
            self.commands[name] = _load_command(name)
        return super().get_command(ctx, name)


def _load_command(name: str) -> Any:
    module_name = "import_model" if name == "import" else name
    module = import_module(f"regard.cli.{module_name}")
    panel = next(panel for panel, names in COMMANDS.items() if name in names)
    parent = typer.Typer(callback=lambda: None)  # with a callback, a single command stays a subcommand
    if isinstance(group := getattr(module, "app", None), typer.Typer):
        parent.add_typer(group, name=name, rich_help_panel=panel)
    else:
        epilog = getattr(module, "EXAMPLES", None)
        parent.command(name, cls=HelpCommand, epilog=epilog, rich_help_panel=panel)(getattr(module, module_name))
    group_command: Any = typer.main.get_command(parent)
    command = group_command.commands[name]
    command.advanced = getattr(module, "ADVANCED", "").split()  # parameters that only --help-all lists
    return command


app = typer.Typer(
    name="regard",
    cls=CommandGroup,
    help="Train, evaluate, inspect and run Transformers on your own text.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def run() -> int:
    """Run the command and return its exit code; errors are printed without a traceback.

    Exit codes: that of a RegardError (1 for most), 2 for a command line that cannot be parsed.
    """
    try:
        code = app(prog_name="regard", standalone_mode=False)
    except RegardError as error:
        _print_error(error)
        return error.exit_code
    except OSError as error:  # a file that cannot be read or written: not a bug in Regard
        hint = "Check the path, its permissions and the free space."
        _print_error(
            RegardError(f"{error.strerror or error}.", location=error.filename and str(error.filename), hint=hint)
        )
        return 1
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help
            typer.echo(error)
        else:
            _print_error(explain_usage(error))
        return 2
    return code if isinstance(code, int) else 0


def _print_error(error: RegardError) -> None:
    if isinstance(error, ConfigError) and error.hint is None:
        error.hint = "`regard model settings` lists all settings with their values and defaults."
    from rich.console import Console  # noqa: TID251 - takes time that a command without errors needs not spend

    Console(stderr=True).print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        option("Show the version and exit.", "--version", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Train, evaluate, inspect and run Transformers on your own text."""
