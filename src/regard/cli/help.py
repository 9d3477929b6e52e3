"""Command help, and errors for command lines that cannot be parsed.

Typer's own help differs between versions, shows a type for flags, and has no place for examples.
"""

import inspect
import sys
from collections.abc import Collection
from copy import copy
from difflib import get_close_matches
from enum import Enum
from itertools import pairwise, takewhile
from typing import Any

import typer  # noqa: TID251
from typer.core import TyperCommand, TyperGroup  # noqa: TID251

from regard.base.errors import RegardError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # Click's class; newer Typer versions bundle Click
OTHER_OPTIONS = "Other options"
HINTS = {  # other tools' options and our training commands' equivalents; see also `config.foreign_names`
    "--epochs": "Use --steps N or --minutes N.",
    "--device": "Use --set device.name=cuda.",
    "--model": "Use --preset NAME; `regard model presets` lists them.",
}
RUN_HINTS = {"--device": 'The command runs on the CPU; in Python: regard.load("MODEL", "cuda").'}
SYNONYMS = (  # synonyms across commands and tools
    ("--batch-tokens", "--batch-size"),
    ("--max-new-tokens", "--max-new-tokens", "--max-tokens"),
    ("--n-best", "--count", "--num-return-sequences"),
    ("--out", "--output", "--save"),
    ("--beam", "--beam-size", "--num-beams"),
    ("--reference", "--target"),
)
SIMILARITY = 0.75  # minimum similarity at which one name may be a misspelling of the other
SHOWS_ALL = "regard.shows_all"  # key of the context
MAX_WIDTH, NAME_WIDTH = 100, 28  # width of the help, and of its name column


class HelpCommand(TyperCommand):
    """Command whose help has examples (its epilog) and option groups (`rich_help_panel`).

    --help omits the parameters in `advanced`; --help-all includes them.
    """

    advanced: Collection[str] = ()

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, --help-all included."""
        *parameters, help_option = super().get_params(ctx)
        help_all: Any = copy(help_option)  # the constructor differs between versions of Typer
        help_all.name, help_all.opts, help_all.callback = "help_all", ["--help-all"], _show_all
        help_all.help, help_all.hidden = "Show all options and exit.", not self.advanced
        return [*parameters, help_option, help_all]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.width = min(formatter.width + 2, MAX_WIDTH)
        _write_start(self, ctx, formatter)
        _write_parameters(self, ctx, formatter, () if ctx.meta.get(SHOWS_ALL) else self.advanced)


def _show_all(context: Any, _parameter: Any, is_requested: bool) -> None:
    if is_requested:
        context.meta[SHOWS_ALL] = True
        typer.echo(context.command.get_help(context))
        raise typer.Exit


class HelpGroup(TyperGroup):
    """Command group whose help has examples and headings."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.width = min(formatter.width + 2, MAX_WIDTH)
        _write_start(self, ctx, formatter)
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            panel = getattr(command, "rich_help_panel", None)
            heading = panel if isinstance(panel, str) else "Commands"
            summary = inspect.cleandoc(getattr(command, "help", None) or "").split("\n\n")[0].replace("\n", " ")
            panels.setdefault(heading, []).append((name, summary))
        for heading, rows in panels.items():
            _write_section(formatter, heading, rows)
        _write_parameters(self, ctx, formatter)
        formatter.write(f"\n`{ctx.command_path} COMMAND --help` shows the common options, --help-all shows all.\n")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; the error for an unknown command suggests the most similar one."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            similar = get_close_matches(args[0], self.list_commands(ctx), 1)
            hint = f" Did you mean `{ctx.command_path} {similar[0]}`?" if similar else ""
            raise UsageError(f"There is no command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


def explain_usage(error: Any) -> RegardError:
    """Convert a parser error into a RegardError with location and hint."""
    context: Any = getattr(error, "ctx", None)
    command = _find_command() if context is None else context.command_path
    message = error.format_message().replace("(Possible options: ", "Did you mean: ").rstrip(")")
    option = getattr(error, "option_name", None)
    if option and context is not None and message.startswith("No such option"):
        hint = f" Did you mean {similar}?" if (similar := _find_similar_option(option, context)) else ""
        message = f"There is no option {option}.{_find_hint(option, context.command.name) or hint}"
    if (parameter := getattr(error, "param", None)) is not None and message.startswith("Invalid value"):
        value = next((value for name, value in pairwise(sys.argv) if name in parameter.opts), None)
        message = error.message.removeprefix("Value error, ").partition(", unable")[0].rstrip(".")
        got = "" if value is None or f"'{value}'" in message else f", got '{value}'"
        message = f"{parameter.opts[0]}: {message}{got}."
    return RegardError(message, location=command, hint=f"`{command} --help` lists the options, with examples.")


def _find_hint(option: str, command: str) -> str:
    """Return the equivalent of another tool's option."""
    if command not in ("train", "tune"):
        return f" {RUN_HINTS[option]}" if option in RUN_HINTS else ""
    from regard.config.foreign_names import REPLACEMENTS

    paths = REPLACEMENTS.get(option.removeprefix("--").replace("-", "_"), ())
    settings = " or ".join(f"--set {path}=VALUE" for path in paths)
    return f" {HINTS[option]}" if option in HINTS else f" Use {settings}." if settings else ""


def _find_similar_option(option: str, context: Any) -> str | None:
    """Return a command's option that is a synonym, has the same prefix or is spelled almost the same."""
    names = [name for parameter in context.command.get_params(context) for name in parameter.opts]
    same = [name for group in SYNONYMS if option in group for name in group if name in names]
    longer = [name for name in names if name.startswith(option)]
    return next(iter([*same, *longer, *get_close_matches(option, names, 1, SIMILARITY)]), None)


def _find_command() -> str:
    """Return the called command from the arguments: some parser errors do not name it."""
    names = list(takewhile(lambda argument: argument.isalpha(), sys.argv[1:]))
    return " ".join(["regard", *(names[:2] if names[:1] in (["model"], ["tokenizer"]) else names[:1])])


def _write_start(command: Any, ctx: Any, formatter: Any) -> None:
    """Write usage, description and examples."""
    arguments = [_format_argument(parameter) for parameter in command.get_params(ctx) if _is_argument(parameter)]
    suffix = "COMMAND ..." if isinstance(command, TyperGroup) else "[OPTIONS]"
    formatter.write(f"Usage: {' '.join([ctx.command_path, *arguments, suffix])}\n")
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        formatter.write_paragraph()
        formatter.write_text(paragraph)
    if command.epilog:
        with formatter.section(_style("Examples")):
            for line in inspect.cleandoc(command.epilog).splitlines():
                formatter.write(f"  {line}\n")


def _write_parameters(command: Any, ctx: Any, formatter: Any, omitted: Collection[str] = ()) -> None:
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        if getattr(parameter, "hidden", False) or parameter.name in omitted:
            continue
        if _is_argument(parameter):
            heading, name = "Arguments", _format_name(parameter)
        else:
            panel = getattr(parameter, "rich_help_panel", None)
            heading = panel if isinstance(panel, str) else OTHER_OPTIONS
            metavar = "" if parameter.is_flag else f" {_format_name(parameter)}"
            name = " / ".join(filter(None, (", ".join(sorted(parameter.opts, key=len)), *parameter.secondary_opts)))
            name += metavar
        panels.setdefault(heading, []).append((name, (parameter.help or "") + _format_default(parameter)))
    for heading in sorted(panels, key=lambda heading: heading == OTHER_OPTIONS):  # stable sort: these come last
        is_only = heading == OTHER_OPTIONS and set(panels) <= {"Arguments", OTHER_OPTIONS}
        _write_section(formatter, "Options" if is_only else heading, panels[heading])


def _write_section(formatter: Any, heading: str, rows: list[tuple[str, str]]) -> None:
    with formatter.section(_style(heading)):
        formatter.write_dl(rows, col_max=NAME_WIDTH)


def _style(heading: str) -> str:
    return typer.style(heading, bold=True)  # removed if the output is not a terminal


def _is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


def _format_name(parameter: Any) -> str:
    return parameter.metavar or parameter.name.upper()


def _format_argument(parameter: Any) -> str:
    name = _format_name(parameter) + (" ..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _format_default(parameter: Any) -> str:
    default, shown = parameter.default, parameter.show_default
    if isinstance(shown, str):
        return f" [default: {shown}]"
    if not shown or default is None or isinstance(default, bool) or default == "" or callable(default):
        return ""
    return f" [default: {default.value if isinstance(default, Enum) else default}]"
