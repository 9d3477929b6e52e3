"""Options shared by several commands, and commands whose options are annotated dataclass fields."""

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
        help_text: The option's help.
        names: The option names, if they differ from the parameter name.
        panel: The heading in the help; None lists the option under "Other options".
        details: Further arguments of `typer.Option`. An option with a minimum or maximum takes a number, "N".
    """
    if "min" in details or "max" in details:
        details.setdefault("metavar", "N")
    return typer.Option(*names, help=help_text, rich_help_panel=panel, **details)


def settings_option(example: str) -> Any:
    """Return the Typer option that changes settings."""
    return option(f"Override a setting, e.g. {example}. Repeatable.", "--set", metavar="A.B=C")


def is_given(context: typer.Context, parameter: str) -> bool:
    """Return whether the user gave a parameter, even with its default value."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def file_option(help_text: str, *names: str, **details: Any) -> Any:
    """Return a Typer option that takes a file name."""
    return option(help_text, *names, metavar="FILE", **details)


def check_model(path: Path | None) -> Path | None:
    """Reject a path without a model before the slow torch import."""
    if path is not None:
        find_model(path)
    return path


def check_models(paths: list[Path] | None) -> list[Path] | None:
    """Reject paths without a model (see `check_model`)."""
    for path in paths or ():
        find_model(path)
    return paths


def check_input_file(path: Path | None) -> Path | None:
    """Reject a missing file before torch is imported."""
    if path is not None and not path.is_file():
        message = "This is a folder, not a file." if path.is_dir() else "There is no such file."
        raise RegardError(message, location=str(path), hint="Check the path.")
    return path


def check_input_files(paths: list[Path] | None) -> list[Path] | None:
    """Reject missing files (see `check_input_file`)."""
    for path in paths or ():
        check_input_file(path)
    return paths


def check_existence(paths: list[str] | None) -> list[str] | None:
    """Reject missing files or folders before torch is imported."""
    for path in paths or ():
        if not Path(path).exists():
            raise RegardError("There is no such file.", location=path, hint="Check the path.")
    return paths


def check_output_file(path: Path | None) -> Path | None:
    """Reject a file that cannot be written before the work starts."""
    if path is not None and (
        path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK)
    ):
        raise RegardError("This file cannot be written.", location=str(path), hint="Give a file in an existing folder.")
    return path


def check_output_folder(path: Path | None) -> Path | None:
    """Reject a folder that cannot be created before the work starts."""
    if path is not None and not path.exists():
        parent = next(parent for parent in path.absolute().parents if parent.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            message = "This folder cannot be created."
            raise RegardError(message, location=str(path), hint=f"{parent} is not a writable folder.")
    return path


def input_file_option(help_text: str, *names: str, panel: str = INPUT_PANEL) -> Any:
    """Return a Typer option for an input file."""
    return file_option(help_text, *names, panel=panel, callback=check_input_file)


def output_file_option(help_text: str, *names: str, **details: Any) -> Any:
    """Return a Typer option for an output file."""
    return file_option(help_text, *names, panel=OUTPUT_PANEL, callback=check_output_file, **details)


COLUMNS_HELP = "Columns of a table by number or name: 2,4 or 2,label=3. Default: chosen by content."
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model folder or run folder.", callback=check_model)
]
InputFile = Annotated[Path | None, input_file_option("Read the texts from a file.", "--input")]
TargetLanguage = Annotated[
    str | None,
    option("Target language (multilingual models).", "--target-language", metavar="LANGUAGE", panel=INPUT_PANEL),
]
LengthExponent = Annotated[
    float,
    option("Exponent of the length normalization; larger values favor longer texts.", min=0.0, panel=SEARCH_PANEL),
]


class Engine(StrEnum):
    """Inference engines."""

    auto = "auto"
    torch = "torch"
    ctranslate2 = "ctranslate2"
    ctranslate2_int8 = "ctranslate2-int8"


ENGINE_NAMES = f"[{'|'.join(Engine)}]"
EngineOption = Annotated[
    Engine,
    option(
        "Engine that runs the model. auto: CTranslate2 in float32 if it is installed and there is enough to translate, "
        "else PyTorch. The export is made once, next to MODEL.",
        metavar=ENGINE_NAMES,
    ),
]
Window = Annotated[int | None, option("Context window in tokens for long texts (language models).", min=2)]
Unconstrained = Annotated[
    bool,
    option("Tag every word independently; entity tags may then violate their scheme (I-x after O).", "--unconstrained"),
]
BatchTokens = Annotated[int, option("Maximum number of tokens in a batch.", min=1)]


def takes_options(
    options_class: type[Options],
    parameters: Mapping[str, Any] | None = None,
    types: Mapping[str, Any] | None = None,
    required: Collection[str] = (),
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Convert a function of one options object into a function with one parameter per field, as Typer requires.

    Args:
        options_class: A dataclass.
        parameters: The Typer option of each field, unless the fields are annotated with them. Fields without one
            keep their defaults.
        types: Types that replace the field types.
        required: Fields that are required despite having a default.
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
