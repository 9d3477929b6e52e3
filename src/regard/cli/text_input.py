"""Helpers for commands that run a model: load it and read texts line by line."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from regard.base.errors import RegardError
from regard.base.files import check_not_overwritten
from regard.base.formatting import pluralize, quote_path
from regard.base.progress import is_shown
from regard.cli.progress import print_line, show_stages

if TYPE_CHECKING:
    from regard.exchange.engine_cache import Announce
    from regard.store.export_folder import Engine
    from regard.tasks.pipeline import Pipeline

CHUNK_LINES = 2048  # lines to read, sort by length and batch at a time
AnyPipeline = TypeVar("AnyPipeline", bound="Pipeline")


def load_as(
    folder: Path, pipeline_class: type[AnyPipeline], engine: str = "torch", sentences: int | None = None
) -> AnyPipeline:
    """Load a model folder as this pipeline, on an engine (see `load_on_engine`).

    Raises:
        RegardError: The model is of a different kind; the hint names its command.
    """
    from regard.exchange.engine_cache import load_on_engine  # only when needed

    pipeline = load_on_engine(folder, cast("Engine", engine), show_export, sentences=sentences)
    if not isinstance(pipeline, pipeline_class):
        raise RegardError(
            f"This is a {pipeline.kind}, not a {pipeline_class.kind}.",
            location=str(folder),
            hint=f'Use `regard {pipeline.command} {quote_path(folder)} "..."`.',
        )
    return pipeline


@contextmanager
def show_export() -> "Iterator[Announce]":
    """Show the progress and the outcome of an export on standard error."""
    with nullcontext() if is_shown() else show_stages():
        yield print_line


def check_paths(texts: list[str] | None, input_file: Path | None, output_file: Path | None = None) -> None:
    """Reject texts combined with an input file, and an output file that is also the input file."""
    if texts and input_file is not None:
        raise RegardError("Texts and --input were both given.", hint="Give one of them.")
    check_not_overwritten(input_file, output_file)


def read_lines(texts: list[str] | None, input_file: Path | None) -> tuple[Iterable[str], int | None, int]:
    """Read texts from the arguments, a file, or standard input.

    Returns:
        The texts, their number (None if unknown), and how many to process at a time.
    """
    if texts:
        return texts, len(texts), CHUNK_LINES
    if input_file is None:
        is_interactive = sys.stdin.isatty()  # interactive input: process line by line
        return _decode_lines(sys.stdin.buffer), None, 1 if is_interactive else CHUNK_LINES
    from regard.data.example import Defects
    from regard.data.readers.text_files import iter_lines  # also reads .gz, .xz and .zst

    total = sum(len(block.lines) for block in iter_lines(str(input_file), Defects()))
    return (line for block in iter_lines(str(input_file), Defects()) for line in block.lines), total, CHUNK_LINES


def zip_file(
    chunks: Iterable[list[str]], file: Path | None, shared_text: str | None
) -> Iterator[tuple[list[str], list[str] | None]]:
    """Pair each chunk of texts with the corresponding lines of a file, with one shared text, or with None."""
    lines = None if file is None else iter(read_lines(None, file)[0])
    count, hint = 0, "Line n of the file must belong to text n."
    for chunk in chunks:
        partners = None if shared_text is None else [shared_text] * len(chunk)
        if lines is not None:
            partners = [line for _, line in zip(chunk, lines, strict=False)]
            if len(partners) < len(chunk):
                line_count = pluralize(count + len(partners), "line")
                raise RegardError(f"The file has {line_count}; there are more texts.", location=str(file), hint=hint)
        count += len(chunk)
        yield chunk, partners
    if lines is not None and next(lines, None) is not None:
        message = f"The file has more lines than there are texts ({pluralize(count, 'text')})."
        raise RegardError(message, location=str(file), hint=hint)


def read_text(input_file: Path | None) -> str:
    """Read a whole file, or standard input, as one text."""
    from regard.data.readers.text_files import read_decompressed  # also reads .gz, .xz and .zst

    content = sys.stdin.buffer.read() if input_file is None else b"".join(read_decompressed(str(input_file)))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        location = "standard input" if input_file is None else str(input_file)
        raise RegardError(
            f"The text is not UTF-8: {error.reason}.", location=location, hint="Convert it to UTF-8."
        ) from error


def _decode_lines(lines: BinaryIO) -> Iterator[str]:
    """Decode standard input as it arrives, with the same line endings as files (`regard.data.readers.text_files`)."""
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise RegardError(
                f"The line is not UTF-8: {error.reason}.",
                location=f"standard input:{number}",
                hint="Convert it to UTF-8.",
            ) from error
