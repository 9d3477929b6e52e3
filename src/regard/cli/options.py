"""Options that several commands share, and commands whose options are the annotated fields of a dataclass."""

import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.store.model_path import find_model

Options = TypeVar("Options")
StringList = list[str] | None


INPUT_PANEL, OUTPUT_PANEL, SEARCH_PANEL, SAMPLING_PANEL = (
    "Input",
    "Output",
    "Search",
    "Sampling",
)  # headings in the help


def option(help_text: str, *names: str, panel: str | None = None, **details: Any) -> Any:
    """Return a Typer option.

    Args:
        help_text: Every option has one, so it comes first.
        names: The spelling, if it differs from the name of the parameter.
        panel: The heading in the help; None lists the option under "Other options".
        details: Further arguments of `typer.Option`. An option with a minimum or maximum takes a number, "N".
    """
    if "min" in details or "max" in details:
        details.setdefault("metavar", "N")
    return typer.Option(*names, help=help_text, rich_help_panel=panel, **details)


def file_option(help_text: str, *names: str, **details: Any) -> Any:
    """Return a Typer option that takes a file name."""
    return option(help_text, *names, metavar="FILE", **details)


def check_model(path: Path | None) -> Path | None:
    """Refuse a path without a model before torch is imported, which takes seconds."""
    if path is not None:
        find_model(path)
    return path


def check_models(paths: list[Path] | None) -> list[Path] | None:
    """Refuse paths without a model (see `check_model`)."""
    for path in paths or ():
        find_model(path)
    return paths


def check_input_file(path: Path | None) -> Path | None:
    """Refuse a file that does not exist, before torch is imported."""
    if path is not None and not path.is_file():
        message = "This is a folder, not a file." if path.is_dir() else "There is no such file."
        raise RegardError(message, location=str(path), hint="Check the path.")
    return path


def check_existence(paths: list[str] | None) -> list[str] | None:
    """Refuse files or folders that do not exist, before torch is imported."""
    for path in paths or ():
        if not Path(path).exists():
            raise RegardError("There is no such file.", location=path, hint="Check the path.")
    return paths


def check_output_file(path: Path | None) -> Path | None:
    """Refuse a file that cannot be written, before the work starts."""
    if path is not None and (
        path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK)
    ):
        raise RegardError(
            "This file cannot be written.", location=str(path), hint="Name a file in a folder that exists."
        )
    return path


def check_output_folder(path: Path | None) -> Path | None:
    """Refuse a folder that cannot be created, before the work starts."""
    if path is not None and not path.exists():
        parent = next(parent for parent in path.absolute().parents if parent.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            message = "This folder cannot be created."
            raise RegardError(message, location=str(path), hint=f"{parent} is not a folder that you can write to.")
    return path


def input_file_option(help_text: str, *names: str, panel: str = INPUT_PANEL) -> Any:
    """Return a Typer option that takes the name of a file to read."""
    return file_option(help_text, *names, panel=panel, callback=check_input_file)


def output_file_option(help_text: str, *names: str, **details: Any) -> Any:
    """Return a Typer option that takes the name of a file to write."""
    return file_option(help_text, *names, panel=OUTPUT_PANEL, callback=check_output_file, **details)


COLUMNS_HELP = "Columns of a table by number or name: 2,4 or 2,label=3. Default: chosen by content."
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model folder or run folder.", callback=check_model)
]
InputFile = Annotated[Path | None, input_file_option("Read the texts from a file, one per line.", "--input")]
TargetLanguage = Annotated[
    str | None,
    option("Target language (multilingual models).", "--target-language", metavar="LANGUAGE", panel=INPUT_PANEL),
]
LengthExponent = Annotated[
    float,
    option("Exponent of the length normalization; larger values favor longer texts.", min=0.0, panel=SEARCH_PANEL),
]


class Engine(StrEnum):
    """The engines that run a model."""

    torch = "torch"
    ctranslate2 = "ctranslate2"
    auto = "auto"


EngineOption = Annotated[
    Engine,
    option(
        "Run the model in PyTorch (torch), or its export MODEL-ctranslate2 (ctranslate2); auto: the export if its "
        "parity passed.",
        metavar="NAME",
    ),
]
Window = Annotated[int | None, option("Context window in tokens for long texts (language models).", min=2)]
Unconstrained = Annotated[
    bool,
    option("Tag every word by itself: entity tags may then break their scheme (I-x after O).", "--unconstrained"),
]
BatchTokens = Annotated[int, option("Maximum number of tokens in a batch.", min=1)]


def takes_options(
    options_class: type[Options],
    parameters: Mapping[str, Any] | None = None,
    types: Mapping[str, Any] | None = None,
    required: Collection[str] = (),
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Turn a function of one options object into a function with one parameter per field, as Typer expects it.

    Args:
        options_class: A dataclass.
        parameters: The Typer option of each field, unless the fields are annotated with them. Fields without one
            keep their defaults.
        types: Types that replace those of the fields.
        required: Fields that the user must give although they have a default.
    """
    signature = inspect.signature(options_class)
    if parameters is not None:
        hints = {**get_type_hints(options_class), **(types or {})}
        signature = signature.replace(
            parameters=[
                field.replace(
                    annotation=Annotated[hints[field.name], parameters[field.name]],
                    kind=inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if field.name in required else field.default,
                )
                for field in signature.parameters.values()
                if field.name in parameters
            ]
        )

    def decorate(function: Callable[[Options], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**values: object) -> None:
            function(options_class(**values))

        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {}
        return command

    return decorate
