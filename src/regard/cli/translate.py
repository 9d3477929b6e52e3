"""`regard translate`: translate arguments, lines of a file or of standard input, or a document."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import join_lines
from regard.cli import search_options
from regard.cli.options import (
    INPUT_PANEL,
    OUTPUT_PANEL,
    SEARCH_PANEL,
    BatchTokens,
    Engine,
    EngineOption,
    InputFile,
    LengthExponent,
    ModelArgument,
    StringList,
    TargetLanguage,
    check_models,
    is_given,
    option,
    output_file_option,
)
from regard.cli.progress import show_progress
from regard.cli.search_options import SearchKind
from regard.cli.text_input import CHUNK_LINES, check_paths, load_as, read_lines
from regard.cli.translate_document import is_document_file, translate_file
from regard.cli.translation_report import TranslationReport
from regard.text.glossary import Glossary

if TYPE_CHECKING:
    from regard.tasks.results import Translation
    from regard.tasks.translation.translator import Translator

_input, _output, _search = (partial(option, panel=panel) for panel in (INPUT_PANEL, OUTPUT_PANEL, SEARCH_PANEL))
_constraint = partial(option, panel="Constraints")
EXAMPLES = """
regard translate my-model "Where is Tom?"
regard translate my-model --input news.en --output news.de
regard translate my-model --input letter.docx --output brief.docx --report report.json
cat news.en | regard translate my-model > news.de
"""
PER_LINE = ("n_best", "as_json", "align", "prefix", "require")  # options of lines, not of documents
ADVANCED = "align prefix require forbid top_k min_p batch_tokens engine"


def translate(
    context: typer.Context,
    folder: ModelArgument,
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="Texts to translate.")] = None,
    input_file: InputFile = None,
    output_file: Annotated[
        Path | None, output_file_option("Write to a file instead of standard output.", "--output")
    ] = None,
    beam: Annotated[
        int | None,
        _search(
            "Beam size (1 is greedy); with --search sample or mbr: number of samples.",
            min=1,
            show_default="5; sample: --n-best; mbr: 32",
        ),
    ] = None,
    length_penalty: LengthExponent = 1.0,
    search: search_options.SearchOption = SearchKind.beam,
    min_quality: Annotated[
        str | None,
        _output(
            "Report translations whose estimated quality is lower, and leave such lines empty: good, check or a number "
            "from 0 to 1. The model needs a quality estimate (`regard evaluate --fit-quality`).",
            metavar="QUALITY",
        ),
    ] = None,
    n_best: Annotated[
        int, _output("Translations per text; above 1 prints line number, score, translation.", min=1)
    ] = 1,
    ensemble: Annotated[
        list[Path] | None,
        _search("Ensemble with this model. Repeatable.", metavar="MODEL", callback=check_models),
    ] = None,
    max_new_tokens: Annotated[
        int | None,
        _search("Maximum number of target tokens.", min=1, show_default="max_length_ratio * source + 50"),
    ] = None,
    into: TargetLanguage = None,
    batch_tokens: BatchTokens = 4096,
    engine: EngineOption = Engine.auto,
    report_file: Annotated[
        Path | None,
        output_file_option("Documents: write the segments to check, with the reasons, as JSON.", "--report"),
    ] = None,
    align: Annotated[bool, _output("With --json: add word alignments.", "--align")] = False,
    as_json: Annotated[
        bool, _output("Print one JSON object per text: text, score, tokens, logprobs, ...", "--json")
    ] = False,
    prefix: Annotated[str, _constraint("Text that every translation starts with.", metavar="TEXT")] = "",
    require: Annotated[
        StringList,
        _constraint(
            "Phrase that every translation must contain (whole words; case-sensitive). Repeatable.", metavar="PHRASE"
        ),
    ] = None,
    forbid: Annotated[
        StringList,
        _constraint(
            "Phrase that no translation may contain (by tokens; case-sensitive). Repeatable.", metavar="PHRASE"
        ),
    ] = None,
    glossary: Annotated[
        Path | None,
        _constraint(
            "Terms and their translations: lines of TERM, tab, target form, tab, another form ... A line with a term "
            "only keeps it as it is. Missing terms are reported.",
            metavar="FILE",
        ),
    ] = None,
    temperature: search_options.Temperature = 1.0,
    top_k: search_options.TopK = None,
    top_p: search_options.TopP = None,
    min_p: search_options.MinP = None,
    seed: search_options.Seed = None,
) -> None:
    """Translate texts, lines or a document.

    Line n of the output translates line n of the input. A document keeps everything but its text; the suffix of --input
    names its format: news.en has lines.
    """
    check_paths(texts, input_file, output_file)
    per_line = [name for name in PER_LINE if is_given(context, name)]
    is_document = input_file is not None and is_document_file(input_file, per_line)
    if report_file is not None and not is_document:
        raise RegardError("--report is for documents.", hint="Leave it out.")
    search_options.check_unused_options(context, search)
    if align and not as_json:
        raise RegardError("--align needs --json.", hint="Add --json, or leave out --align.")
    from regard.tasks.encoding import chunk_seed, chunks  # imports the settings of models: only when needed
    from regard.tasks.translation.constraints import Constraints
    from regard.tasks.translation.quality import find_min_quality

    filters = None
    if search in search_options.SAMPLING_KINDS:
        from regard.decode.filters import Filters  # imports torch

        filters = Filters(temperature, top_k, top_p, min_p)
    options: dict[str, Any] = {
        "batch_tokens": batch_tokens,
        "max_new_tokens": max_new_tokens,
        "target_language": into,
        "search": search_options.make_search(
            search, beam or search_options.default_count(search, n_best), length_penalty, filters
        ),
        "n_best": n_best,
        "seed": seed,
        "with_scores": as_json or n_best > 1,
    }
    # Fail on unreadable input before overwriting an existing output file.
    terms = None if glossary is None else Glossary.load(glossary)
    load = partial(_load_translator, folder, ensemble or [], engine)
    if input_file is not None and is_document:
        options["constraints"] = Constraints(forbidden=forbid or (), glossary=terms)
        translate_file(load, input_file, output_file, report_file, options, min_quality)
        return
    lines, total, chunk_size = read_lines(texts, input_file)
    if total is None and chunk_size > 1:  # standard input: look ahead far enough to know whether an export pays off
        ahead = list(islice(lines, CHUNK_LINES))
        lines, sentences = chain(ahead, lines), len(ahead)
    else:
        sentences = total or 0
    translator = load(sentences)
    minimum = None if min_quality is None else find_min_quality(translator.quality, min_quality, options["search"])
    checks = TranslationReport(minimum)
    with ExitStack() as stack:
        out = (
            sys.stdout
            if output_file is None
            else stack.enter_context(output_file.open("w", encoding="utf-8", newline="\n"))
        )
        is_waiting = not texts and chunk_size > 1 and not (out is sys.stdout and out.isatty())
        report = stack.enter_context(show_progress("translating", total)) if is_waiting else None
        line_number = 0
        for chunk_index, chunk in enumerate(chunks(lines, chunk_size)):
            options["seed"] = chunk_seed(seed, chunk_index)  # every chunk uses different random numbers
            constraints = None
            if prefix or require or forbid or terms:
                constraints = Constraints(
                    [prefix] * len(chunk) if prefix else None,
                    [require] * len(chunk) if require else None,
                    forbid or (),
                    terms,
                )
            translations = translator.translate(chunk, report=report, constraints=constraints, **options)
            if align:
                from regard.tasks.translation.word_alignment import with_alignment

                translations = with_alignment(translator, chunk, translations, target_language=into)
            for text, translation in zip(chunk, translations, strict=True):
                line_number += 1
                checks.add(translation, f"line {line_number}")
                shown = translation if as_json or n_best > 1 else checks.reject(translation)
                _write(out, line_number, text, shown, as_json, n_best)
            out.flush()
        checks.finish()


def _load_translator(folder: Path, ensemble: list[Path], engine: Engine, sentences: int) -> "Translator":
    from regard.tasks.translation.translator import Translator

    if ensemble and engine not in (Engine.auto, Engine.torch):
        raise RegardError("Ensembles run in PyTorch only.", hint="Leave out --engine or --ensemble.")
    if not ensemble:
        return load_as(folder, Translator, engine, sentences)
    from regard.tasks.translation.ensemble import EnsembleTranslator  # imports torch

    return EnsembleTranslator([load_as(path, Translator) for path in (folder, *ensemble)])


def _write(out: TextIO, line_number: int, source: str, translation: "Translation", as_json: bool, n_best: int) -> None:
    if as_json:
        out.write(json.dumps({"source": source, **_to_dict(translation)}, ensure_ascii=False) + "\n")
    elif n_best == 1:
        out.write(join_lines(translation.text) + "\n")
    else:
        for candidate in (translation, *translation.alternatives):
            out.write(f"{line_number}\t{candidate.score:.4f}\t{join_lines(candidate.text)}\n")


def _to_dict(translation: "Translation") -> dict[str, Any]:
    """Convert to a dict and drop empty optional fields."""
    defaults = {"utility": None, "alternatives": (), "alignment": None, "unsatisfied_terms": ()}
    defaults |= {"quality": None, "rating": None, "warnings": ()}
    return {
        name: value for name, value in asdict(translation).items() if name not in defaults or value != defaults[name]
    }
