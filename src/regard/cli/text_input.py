"""Texts from arguments, a file or standard input, line by line, and how far it got: what several verbs share."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rich.console import Console  # noqa: TID251
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: TID251

from regard.base.errors import RegardError

CHUNK_LINES = 2048  # lines that are read, sorted by length and worked on together


def check_paths(texts: list[str] | None, input_file: Path | None, output_file: Path | None) -> None:
    """What cannot be read or written is said before the model is opened."""
    if texts and input_file is not None:
        raise RegardError("Texts and --input were both given.", fix="Give one of them.")
    if input_file is not None and not input_file.is_file():
        raise RegardError("There is no such file.", where=str(input_file), fix="Give a text file, one sentence a line.")
    if output_file is None:
        return
    if output_file.is_dir() or not output_file.absolute().parent.is_dir():
        raise RegardError(
            "This file cannot be written.", where=str(output_file), fix="Name a file in a folder that exists."
        )
    if input_file is not None and output_file.exists() and output_file.samefile(input_file):
        raise RegardError("The output would overwrite the input.", where=str(output_file), fix="Choose another name.")


def read_lines(texts: list[str] | None, input_file: Path | None) -> tuple[Iterable[str], int | None, int]:
    """The texts, how many there are (None: nobody knows), and how many lines to take at a time."""
    if texts:
        return texts, len(texts), CHUNK_LINES
    if input_file is None:
        is_interactive = sys.stdin.isatty()  # a person waits for every line
        return _decode_lines(sys.stdin.buffer), None, 1 if is_interactive else CHUNK_LINES
    from regard.data.example import Defects
    from regard.data.readers.text_files import iter_lines  # also .gz, .xz and .zst

    total = sum(len(block.lines) for block in iter_lines(str(input_file), Defects()))
    return (line for block in iter_lines(str(input_file), Defects()) for line in block.lines), total, CHUNK_LINES


def zip_file(
    chunks: Iterable[list[str]], file: Path | None, shared_text: str | None
) -> Iterator[tuple[list[str], list[str] | None]]:
    """Texts, and what belongs to each of them: line n of a file, one text for all, or nothing."""
    lines = None if file is None else iter(read_lines(None, file)[0])
    count, fix = 0, "Line n of both must belong together."
    for chunk in chunks:
        partners = None if shared_text is None else [shared_text] * len(chunk)
        if lines is not None:
            partners = [line for _, line in zip(chunk, lines, strict=False)]
            if len(partners) < len(chunk):
                what = f"There are more texts than the {count + len(partners)} lines of this file."
                raise RegardError(what, where=str(file), fix=fix)
        count += len(chunk)
        yield chunk, partners
    if lines is not None and next(lines, None) is not None:
        raise RegardError(f"The file has more lines than the {count} texts.", where=str(file), fix=fix)


def join_lines(text: str) -> str:
    """A line feed inside a text would shift all lines after it, so it becomes a space."""
    return text.replace("\r", " ").replace("\n", " ")


def read_text(input_file: Path | None) -> str:
    """A file, or standard input, as one text."""
    from regard.data.readers.text_files import read_decompressed  # also .gz, .xz and .zst

    content = sys.stdin.buffer.read() if input_file is None else b"".join(read_decompressed(str(input_file)))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = "standard input" if input_file is None else str(input_file)
        raise RegardError(f"The text is not UTF-8: {error.reason}.", where=where, fix="Convert it to UTF-8.") from error


def _decode_lines(lines: BinaryIO) -> Iterator[str]:
    """Standard input, line by line as it comes; lines end as in every file that Regard reads (`regard.data.readers.text_files`)."""
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise RegardError(
                f"The line is not UTF-8: {error.reason}.", where=f"standard input:{number}", fix="Convert it to UTF-8."
            ) from error


@contextmanager
def show_progress(description: str, total: int | None, *, is_hidden: bool) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; what comes out is told how many more are done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=is_hidden or not console.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count: bar.advance(task, count)
