"""`regard translate`: texts, a file or standard input through a model; line n of what comes out belongs to line n."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: TID251

from regard.base.errors import RegardError

if TYPE_CHECKING:
    from regard.pipeline.translator import Translation, Translator

WINDOW = 2048  # lines that are read, sorted by length and translated together


def translate(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="What to translate.")] = None,
    source: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Translate every line of a file instead.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to a file instead of the terminal.")
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Beginnings that are tried together; 1 is greedy.")] = 5,
    alpha: Annotated[
        float, typer.Option(min=0.0, help="How strongly long texts are favoured: score / length^alpha.")
    ] = 1.0,
    longest: Annotated[
        int | None, typer.Option(min=1, help="The most tokens of a translation; twice the source + 50 if not given.")
    ] = None,
    into: Annotated[str | None, typer.Option(metavar="LANGUAGE", help="For a model of many languages: which.")] = None,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Tokens of source in a batch, beams counted.")] = 4096,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: text, score, tokens...")] = False,
) -> None:
    """Translate texts, every line of a file, or every line of standard input.

    Line n of what comes out belongs to line n of what goes in; empty lines stay empty.
    """
    _refuse_early(texts, source, output)
    translator = _load(folder)
    with ExitStack() as stack:
        lines, total, window = _lines(texts, source, stack)
        out = sys.stdout if output is None else stack.enter_context(output.open("w", encoding="utf-8", newline="\n"))
        bar = stack.enter_context(_progress(hidden=window == 1 or (out is sys.stdout and out.isatty())))
        task = bar.add_task("translating", total=total)

        from regard.pipeline.batches import windows  # torch: only when it is needed

        for some in windows(lines, window):
            found = translator.translate(
                some,
                beam=beam,
                alpha=alpha,
                batch_tokens=batch_tokens,
                longest=longest,
                into=into,
                report=lambda count: bar.advance(task, count),
            )
            for text, translation in zip(some, found, strict=True):
                _write(out, text, translation, as_json)
            out.flush()


def _load(folder: Path) -> "Translator":
    from regard.pipeline.load import load  # torch: only when it is needed
    from regard.pipeline.translator import Translator

    model = load(folder)
    if not isinstance(model, Translator):
        raise RegardError(
            "This model writes on; it does not translate.",
            where=str(folder),
            fix=f'Use `regard generate {folder} "..."`.',
        )
    return model


def _refuse_early(texts: list[str] | None, source: Path | None, output: Path | None) -> None:
    """What cannot be read or written is said before the model is opened."""
    if texts and source is not None:
        raise RegardError("Texts and --input were both given.", fix="Give one of them.")
    if source is not None and not source.is_file():
        raise RegardError("There is no such file.", where=str(source), fix="Give a text file, one sentence a line.")
    if output is None:
        return
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise RegardError("This file cannot be written.", where=str(output), fix="Name a file in a folder that exists.")
    if source is not None and output.exists() and output.samefile(source):
        raise RegardError("The output would overwrite the input.", where=str(output), fix="Choose another name.")


def _lines(texts: list[str] | None, source: Path | None, stack: ExitStack) -> tuple[Iterable[str], int | None, int]:
    """What to translate, how much it is (None: nobody knows), and how many lines to take at a time."""
    if texts:
        return texts, len(texts), WINDOW
    if source is None:
        one = sys.stdin.isatty()  # a person waits for every line
        return _decoded(sys.stdin.buffer, "standard input"), None, 1 if one else WINDOW
    with source.open("rb") as file:
        total = sum(1 for _ in file)
    return _decoded(stack.enter_context(source.open("rb")), str(source)), total, WINDOW


def _decoded(lines: BinaryIO, name: str) -> Iterator[str]:
    """Lines end with a line feed and nothing else, as everywhere in Regard; a carriage return before it goes."""
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise RegardError(
                f"The line is not UTF-8: {error.reason}.", where=f"{name}:{number}", fix="Convert the file to UTF-8."
            ) from error


def _write(out: TextIO, source: str, translation: "Translation", as_json: bool) -> None:
    if as_json:
        out.write(json.dumps({"source": source, **asdict(translation)}, ensure_ascii=False) + "\n")
    else:  # a line feed inside would shift all lines after it
        out.write(translation.text.replace("\r", " ").replace("\n", " ") + "\n")


def _progress(*, hidden: bool) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal)
