"""`regard translate`: texts, a file or standard input through a model; line n of what comes out belongs to line n."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli import search_options
from regard.cli.loading import load_as
from regard.cli.search_options import LengthNormalization, SearchKind
from regard.cli.text_input import check_paths, join_lines, read_lines, read_text, show_progress

if TYPE_CHECKING:
    from regard.pipeline.results import Translation
    from regard.pipeline.translator import Translator

CONSTRAINTS_PANEL = "What the translations must be like"


def translate(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="What to translate.")] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Translate every line of a file instead.")
    ] = None,
    output_file: Annotated[
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
    length_penalty: Annotated[
        float, typer.Option(min=0.0, help="How strongly long texts are favoured: score / length^alpha.")
    ] = 1.0,
    length_normalization: Annotated[
        LengthNormalization, typer.Option(help="The form of that: length^alpha, or ((5 + length) / 6)^alpha.")
    ] = LengthNormalization.power,
    search: Annotated[
        SearchKind,
        typer.Option(help="How texts are looked for; risk: the one of many draws that is most like the others."),
    ] = SearchKind.beam,
    n_best: Annotated[int, typer.Option("--n-best", min=1, help="Texts for each line: line, score and text.")] = 1,
    ensemble: Annotated[
        list[Path] | None, typer.Option("--with", metavar="FOLDER", help="Models that translate together. Repeat.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="The most tokens of a translation; else as in training, + 50.")
    ] = None,
    into: Annotated[str | None, typer.Option(metavar="LANGUAGE", help="For a model of many languages: which.")] = None,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Tokens of source in a batch, beams counted.")] = 4096,
    document: Annotated[
        bool, typer.Option("--document", help="The input is one text: cut into sentences, put back with its spaces.")
    ] = False,
    align: Annotated[bool, typer.Option("--align", help="With --json: which source word each word looks at.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: text, score, tokens...")] = False,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="How every translation begins.", rich_help_panel=CONSTRAINTS_PANEL)
    ] = "",
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="PHRASE", help="Must be in it. Repeat.", rich_help_panel=CONSTRAINTS_PANEL),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="PHRASE", help="Must not be in it. Repeat.", rich_help_panel=CONSTRAINTS_PANEL),
    ] = None,
    temperature: search_options.Temperature = 1.0,
    top_k: search_options.TopK = None,
    top_p: search_options.TopP = None,
    min_p: search_options.MinP = None,
    seed: search_options.Seed = None,
) -> None:
    """Translate texts, every line of a file, or every line of standard input.

    Line n of what comes out belongs to line n of what goes in; empty lines stay empty.
    """
    check_paths(texts, input_file, output_file)
    search_options.check_unused_options(context, search)
    if align and not as_json:
        raise RegardError("--align shows nothing without --json.", fix="Give both.")
    if document and (n_best > 1 or align or prefix or require):
        fix = "Leave out --n-best, --align, --begin and --require, or translate line by line."
        raise RegardError("A document is translated as a whole, sentence by sentence.", fix=fix)
    from regard.decode.filters import Filters  # torch: only when it is needed
    from regard.pipeline.constraints import Constraints
    from regard.pipeline.encoding import chunk_seed, chunks

    penalty = search_options.make_length_penalty(length_normalization, length_penalty)
    filters = Filters(temperature, top_k, top_p, min_p)
    options: dict[str, Any] = {
        "batch_tokens": batch_tokens,
        "max_length": max_length,
        "target_language": into,
        "search": search_options.make_search(
            search, beam or search_options.default_count(search, n_best), penalty, filters
        ),
        "n_best": n_best,
        "seed": seed,
    }
    # What cannot be read is said before an old output is written over.
    documents = texts or [read_text(input_file)] if document else []
    lines, total, chunk_size = ([], 0, 1) if document else read_lines(texts, input_file)
    translator = _load_translator(folder, ensemble or [])
    with ExitStack() as stack:
        out = (
            sys.stdout
            if output_file is None
            else stack.enter_context(output_file.open("w", encoding="utf-8", newline="\n"))
        )
        if document:
            options["constraints"] = Constraints(forbidden=forbid or ())
            _translate_documents(
                translator, documents, out, as_json, should_end_line=bool(texts) and not as_json, options=options
            )
            return
        advance = stack.enter_context(
            show_progress("translating", total, is_hidden=chunk_size == 1 or (out is sys.stdout and out.isatty()))
        )
        line_number = 0
        for chunk_index, chunk in enumerate(chunks(lines, chunk_size)):
            options["seed"] = chunk_seed(seed, chunk_index)  # else the same chance would come again with every window
            constraints = Constraints(
                [prefix] * len(chunk) if prefix else None, [require] * len(chunk) if require else None, forbid or ()
            )
            translations = translator.translate(chunk, report=advance, constraints=constraints, **options)
            if align:
                from regard.pipeline.word_alignment import with_alignment

                translations = with_alignment(translator, chunk, translations, target_language=into)
            for text, translation in zip(chunk, translations, strict=True):
                line_number += 1
                _write(out, line_number, text, translation, as_json, n_best)
            out.flush()


def _load_translator(folder: Path, ensemble: list[Path]) -> "Translator":
    from regard.pipeline.ensemble import EnsembleTranslator
    from regard.pipeline.translator import Translator

    translator = load_as(folder, Translator)
    return (
        EnsembleTranslator([translator, *(load_as(path, Translator) for path in ensemble)]) if ensemble else translator
    )


def _translate_documents(
    translator: "Translator",
    documents: list[str],
    out: TextIO,
    as_json: bool,
    *,
    should_end_line: bool,
    options: dict[str, Any],
) -> None:
    """Every text is a document of its own; one that has no line end of its own `ends` with one."""
    for text in documents:
        translation = translator.translate_document(text, **options)
        out.write(json.dumps(asdict(translation), ensure_ascii=False) + "\n" if as_json else translation.text)
        if should_end_line:
            out.write("\n")


def _write(out: TextIO, line_number: int, source: str, translation: "Translation", as_json: bool, n_best: int) -> None:
    if as_json:
        out.write(json.dumps({"source": source, **_to_dict(translation)}, ensure_ascii=False) + "\n")
    elif n_best == 1:
        out.write(join_lines(translation.text) + "\n")
    else:
        for candidate in (translation, *translation.alternatives):
            out.write(f"{line_number}\t{candidate.score:.4f}\t{join_lines(candidate.text)}\n")


def _to_dict(translation: "Translation") -> dict[str, Any]:
    """What is not known or was not asked for is left out."""
    defaults = {"utility": None, "alternatives": (), "alignment": None}
    return {
        name: value for name, value in asdict(translation).items() if name not in defaults or value != defaults[name]
    }
