"""`regard translate`: texts, a file or standard input through a model; line n of what comes out belongs to line n."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer  # noqa: TID251

from regard.cli.opened import opened
from regard.cli.streams import lines_of, progress, refuse_early, whole_text

if TYPE_CHECKING:
    from regard.pipeline.translator import Translation, Translator


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
    document: Annotated[
        bool, typer.Option("--document", help="The input is one text: cut into sentences, put back with its spaces.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: text, score, tokens...")] = False,
) -> None:
    """Translate texts, every line of a file, or every line of standard input.

    Line n of what comes out belongs to line n of what goes in; empty lines stay empty.
    """
    refuse_early(texts, source, output)
    from regard.pipeline.translator import Translator  # torch: only when it is needed

    translator = opened(folder, Translator)
    options: dict[str, Any] = {
        "beam": beam,
        "alpha": alpha,
        "batch_tokens": batch_tokens,
        "longest": longest,
        "into": into,
    }
    with ExitStack() as stack:
        out = sys.stdout if output is None else stack.enter_context(output.open("w", encoding="utf-8", newline="\n"))
        if document:
            _translate_whole(translator, texts, source, out, as_json, options)
            return
        lines, total, window = lines_of(texts, source, stack)
        told = stack.enter_context(
            progress("translating", total, hidden=window == 1 or (out is sys.stdout and out.isatty()))
        )

        from regard.pipeline.batches import windows  # torch: only when it is needed

        for some in windows(lines, window):
            for text, translation in zip(some, translator.translate(some, report=told, **options), strict=True):
                _write(out, text, translation, as_json)
            out.flush()


def _translate_whole(
    translator: "Translator",
    texts: list[str] | None,
    source: Path | None,
    out: TextIO,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Every text is a document of its own."""
    from regard.pipeline.documents import translate_document  # torch: only when it is needed

    for text in texts or [whole_text(source)]:
        found = translate_document(translator, text, **options)
        out.write(json.dumps(asdict(found), ensure_ascii=False) + "\n" if as_json else found.text)
        if texts and not as_json:
            out.write("\n")


def _write(out: TextIO, source: str, translation: "Translation", as_json: bool) -> None:
    if as_json:
        out.write(json.dumps({"source": source, **asdict(translation)}, ensure_ascii=False) + "\n")
    else:  # a line feed inside would shift all lines after it
        out.write(translation.text.replace("\r", " ").replace("\n", " ") + "\n")
