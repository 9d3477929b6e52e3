"""`regard translate`: texts, a file or standard input through a model; line n of what comes out belongs to line n."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli import looked_for
from regard.cli.looked_for import Lengths, Way
from regard.cli.opened import opened
from regard.cli.streams import lines_of, one_line, progress, refuse_early, whole_text

if TYPE_CHECKING:
    from regard.pipeline.answers import Translation
    from regard.pipeline.translator import Translator

WISHES = "What the translations must be like"


def translate(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="What to translate.")] = None,
    source: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Translate every line of a file instead.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to a file instead of the terminal.")
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Beginnings that are tried together (1 is greedy), or texts that are drawn.",
            show_default="5; sample: as many as --n-best; risk: 32",
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(min=0.0, help="How strongly long texts are favoured: score / length^alpha.")
    ] = 1.0,
    lengths: Annotated[
        Lengths, typer.Option(help="The form of that: length^alpha, or ((5 + length) / 6)^alpha.")
    ] = Lengths.power,
    search: Annotated[
        Way, typer.Option(help="How texts are looked for; risk: the one of many draws that is most like the others.")
    ] = Way.beam,
    best: Annotated[int, typer.Option("--n-best", min=1, help="Texts for each line: line, score and text.")] = 1,
    others: Annotated[
        list[Path] | None, typer.Option("--with", metavar="FOLDER", help="Models that translate together. Repeat.")
    ] = None,
    longest: Annotated[
        int | None, typer.Option(min=1, help="The most tokens of a translation; else as in training, + 50.")
    ] = None,
    into: Annotated[str | None, typer.Option(metavar="LANGUAGE", help="For a model of many languages: which.")] = None,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Tokens of source in a batch, beams counted.")] = 4096,
    document: Annotated[
        bool, typer.Option("--document", help="The input is one text: cut into sentences, put back with its spaces.")
    ] = False,
    align: Annotated[bool, typer.Option("--align", help="With --json: which source word each word looks at.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: text, score, tokens...")] = False,
    begin: Annotated[
        str, typer.Option(metavar="TEXT", help="How every translation begins.", rich_help_panel=WISHES)
    ] = "",
    require: Annotated[
        list[str] | None, typer.Option(metavar="PHRASE", help="Must be in it. Repeat.", rich_help_panel=WISHES)
    ] = None,
    forbid: Annotated[
        list[str] | None, typer.Option(metavar="PHRASE", help="Must not be in it. Repeat.", rich_help_panel=WISHES)
    ] = None,
    temperature: looked_for.Temperature = 1.0,
    top_k: looked_for.TopK = None,
    top_p: looked_for.TopP = None,
    min_p: looked_for.MinP = None,
    seed: looked_for.Seed = None,
) -> None:
    """Translate texts, every line of a file, or every line of standard input.

    Line n of what comes out belongs to line n of what goes in; empty lines stay empty.
    """
    refuse_early(texts, source, output)
    looked_for.refuse_unused(context, search)
    if align and not as_json:
        raise RegardError("--align shows nothing without --json.", fix="Give both.")
    if document and (best > 1 or align or begin or require):
        fix = "Leave out --n-best, --align, --begin and --require, or translate line by line."
        raise RegardError("A document is translated as a whole, sentence by sentence.", fix=fix)
    from regard.decode.filters import Filters  # torch: only when it is needed
    from regard.pipeline.batches import chunk_seed, chunks
    from regard.pipeline.wishes import Constraints

    divide_by = looked_for.length_of(lengths, alpha)
    filters = Filters(temperature, top_k, top_p, min_p)
    options: dict[str, Any] = {
        "batch_tokens": batch_tokens,
        "longest": longest,
        "into": into,
        "search": looked_for.search_of(search, beam or looked_for.usual(search, best), divide_by, filters),
        "best": best,
        "seed": seed,
    }
    # What cannot be read is said before an old output is written over.
    documents = texts or [whole_text(source)] if document else []
    lines, total, window = ([], 0, 1) if document else lines_of(texts, source)
    translator = _opened(folder, others or [])
    with ExitStack() as stack:
        out = sys.stdout if output is None else stack.enter_context(output.open("w", encoding="utf-8", newline="\n"))
        if document:
            options["wishes"] = Constraints(forbidden=forbid or ())
            _translate_whole(translator, documents, out, as_json, ends=bool(texts) and not as_json, options=options)
            return
        told = stack.enter_context(
            progress("translating", total, hidden=window == 1 or (out is sys.stdout and out.isatty()))
        )
        count = 0
        for number, some in enumerate(chunks(lines, window)):
            options["seed"] = chunk_seed(seed, number)  # else the same chance would come again with every window
            wishes = Constraints(
                [begin] * len(some) if begin else None, [require] * len(some) if require else None, forbid or ()
            )
            found = translator.translate(some, report=told, constraints=wishes, **options)
            if align:
                from regard.pipeline.word_alignment import with_alignment

                found = with_alignment(translator, some, found, target_language=into)
            for text, translation in zip(some, found, strict=True):
                count += 1
                _write(out, count, text, translation, as_json, best)
            out.flush()


def _opened(folder: Path, others: list[Path]) -> "Translator":
    from regard.pipeline.together import EnsembleTranslator
    from regard.pipeline.translator import Translator

    first = opened(folder, Translator)
    return EnsembleTranslator([first, *(opened(other, Translator) for other in others)]) if others else first


def _translate_whole(
    translator: "Translator", documents: list[str], out: TextIO, as_json: bool, *, ends: bool, options: dict[str, Any]
) -> None:
    """Every text is a document of its own; one that has no line end of its own `ends` with one."""
    from regard.pipeline.documents import translate_document  # torch: only when it is needed

    for text in documents:
        found = translate_document(translator, text, **options)
        out.write(json.dumps(asdict(found), ensure_ascii=False) + "\n" if as_json else found.text)
        if ends:
            out.write("\n")


def _write(out: TextIO, number: int, source: str, found: "Translation", as_json: bool, best: int) -> None:
    if as_json:
        out.write(json.dumps({"source": source, **_plain(found)}, ensure_ascii=False) + "\n")
    elif best == 1:
        out.write(one_line(found.text) + "\n")
    else:
        for one in (found, *found.alternatives):
            out.write(f"{number}\t{one.score:.4f}\t{one_line(one.text)}\n")


def _plain(found: "Translation") -> dict[str, Any]:
    """What is not known or was not asked for is left out."""
    empty = {"utility": None, "alternatives": (), "alignment": None}
    return {name: value for name, value in asdict(found).items() if name not in empty or value != empty[name]}
