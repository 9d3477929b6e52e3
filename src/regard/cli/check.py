"""`regard check`: find defects in a corpus, write an HTML report and a cleaned corpus."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path, PurePath
from typing import Annotated

import typer  # noqa: TID251
from rich.table import Table  # noqa: TID251
from rich.text import Text  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.base.formatting import pluralize
from regard.cli.console import make_console
from regard.cli.options import (
    COLUMNS_HELP,
    OUTPUT_PANEL,
    StringList,
    file_option,
    option,
    output_file_option,
)
from regard.cli.progress import show_stages
from regard.config.sources import AnySourceConfig, AudioConfig, ImagesConfig
from regard.data.corpus import detect_source
from regard.data.doctor import CorpusReport, check_corpus, select_rules
from regard.data.doctor.clean import write_cleaned
from regard.data.doctor.corpus_findings import CorpusFinding, compare_held_out
from regard.data.doctor.detectors.declared_languages import find_swapped_languages
from regard.data.doctor.detectors.lingua import LinguaClassifier
from regard.data.doctor.findings import sample_flagged
from regard.data.doctor.profile import split_sides
from regard.data.doctor.report import render_page
from regard.data.doctor.summary import summarize
from regard.data.example import CorpusError, Defects, Example
from regard.data.preview import preview_source
from regard.data.readers import read
from regard.data.readers.text_files import QUARANTINE_FILE

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        help="Corpus file or folder in any supported format, or two aligned files.",
        show_default=False,
    ),
]
_corpus = partial(option, panel="Corpus")
_held_out = partial(file_option, panel="Held-out data, to find leakage")
_output = partial(option, panel=OUTPUT_PANEL)
_rule = partial(option, panel="Rules")
EXAMPLES = """
regard check train.en train.de
regard check train.en train.de --report report.html --write clean
regard check train.en train.de --validation-source val.en --validation-target val.de
regard check reviews.tsv --strict
"""
SAMPLE = 1000  # leading examples of each corpus used to compare languages and splits
FIRST_LINES = 10  # locations per rule in the --json output


class RereadableCorpus:
    """A re-iterable corpus; `defects` counts the defects of the first pass only."""

    def __init__(self, *sources: AnySourceConfig) -> None:
        self.sources = sources
        self.defects = Defects()
        self._is_first_pass = True

    def __iter__(self) -> Iterator[Example]:
        defects, self._is_first_pass = (self.defects if self._is_first_pass else Defects()), False
        for source in self.sources:
            yield from read(source, defects)


def check(
    files: Paths = None,
    source: Annotated[str | None, _corpus("Source side, one sentence per line.", metavar="FILE")] = None,
    target: Annotated[
        str | None, _corpus("Target side; line n translates line n of the source.", metavar="FILE")
    ] = None,
    columns: Annotated[str | None, _corpus(COLUMNS_HELP, metavar="COLUMNS")] = None,
    languages: Annotated[
        tuple[str, str] | None, _corpus("Languages of source and target, e.g. en de.", metavar="SOURCE TARGET")
    ] = None,
    validation_source: Annotated[str | None, _held_out("Validation data: a corpus file, or its source side.")] = None,
    validation_target: Annotated[str | None, _held_out("Target side of the validation data.")] = None,
    test_source: Annotated[str | None, _held_out("Test data: a corpus file, or its source side.")] = None,
    test_target: Annotated[str | None, _held_out("Target side of the test data.")] = None,
    report: Annotated[Path | None, output_file_option("Write an HTML report to this file.")] = None,
    output_folder: Annotated[
        Path | None,
        _output("Write the cleaned corpus and a quarantine file to this new folder.", "--write", metavar="FOLDER"),
    ] = None,
    remove: Annotated[
        StringList, _rule("Also remove the lines that this rule flags. Repeatable.", metavar="RULE")
    ] = None,
    keep: Annotated[StringList, _rule("Keep the lines that this rule flags. Repeatable.", metavar="RULE")] = None,
    near_duplicates: Annotated[bool, _rule("Search for near duplicates (80 bytes of memory per line).")] = True,
    lingua: Annotated[
        bool, _rule("Detect languages with lingua instead of profiles learned from the corpus.", "--lingua")
    ] = False,
    strict: Annotated[
        bool, _output("Exit with code 1 if the verdict is 'Do not train on this yet'.", "--strict")
    ] = False,
    as_json: Annotated[
        bool, _output("Print one JSON object: verdict, advice, and the lines of each rule.", "--json")
    ] = False,
) -> None:
    """Check a corpus for duplicates, leakage, wrong languages, encoding errors, misalignment and other defects.

    The exit code is 0 regardless of the findings, unless --strict is given or part of the corpus cannot be read.
    """
    if output_folder is not None:
        _check_output_folder(output_folder)
    corpus = RereadableCorpus(_make_source(files or [], source, target, languages, columns))
    held_out = {
        name: RereadableCorpus(
            _make_source([], source_path, target_path, languages, columns if target_path is None else None)
        )
        for name, source_path, target_path in (
            ("validation", validation_source, validation_target),
            ("test", test_source, test_target),
        )
        if source_path is not None or target_path is not None
    }
    preview = list(preview_source(corpus.sources[0]))
    language_classifier = LinguaClassifier(_require_languages(corpus)) if lingua else None
    rules = select_rules(tuple(remove or ()), tuple(keep or ()))
    with show_stages():
        corpus_report = check_corpus(
            corpus,
            held_out,
            rules=rules,
            near_duplicates=near_duplicates,
            language_classifier=language_classifier,
        )
    corpus_report.findings += _find_differences(corpus, held_out, corpus_report)
    messages = []  # write the files before printing, so a closed pipe (`| head`) does not lose them
    if report is not None:
        name = " · ".join(path for source in corpus.sources for path in source.paths)
        content = render_page(name, corpus_report, sample_flagged(corpus_report, corpus), corpus.defects)
        write_atomic(report, content.encode("utf-8", "backslashreplace"))
        messages.append(f"Report: {report}")
    if output_folder is not None and corpus_report.read_error is None:
        result = write_cleaned(corpus_report, corpus.sources, corpus, output_folder)
        messages.append(
            f"Cleaned corpus: {output_folder} ({pluralize(result.kept_rows, 'line')} kept, "
            f"{result.removed_rows:,} in {QUARANTINE_FILE})"
        )
    if as_json:
        typer.echo(json.dumps({**_to_dict(corpus_report), "preview": preview}, ensure_ascii=False))
    else:
        typer.echo("\n".join([*preview, ""]))
        _print_diagnosis(corpus_report, corpus.defects)
        for line in messages:
            typer.echo(line)
    if corpus_report.read_error is not None:
        raise corpus_report.read_error
    if strict and summarize(corpus_report).grade == "bad":
        raise typer.Exit(1)


def _find_differences(
    corpus: RereadableCorpus, held_out: dict[str, RereadableCorpus], corpus_report: CorpusReport
) -> Iterator[CorpusFinding]:
    """Yield mismatches between the texts and the declared languages, and between held-out data and the corpus."""
    for name, examined in {"": corpus, **held_out}.items():
        try:
            sample = list(islice(examined, SAMPLE))
        except CorpusError:  # `check_corpus` has reported it
            continue
        sides = split_sides(sample, has_pairs=any(example.target is not None for example in sample))
        yield from find_swapped_languages(examined.sources[0], sides)
        if name:
            yield from compare_held_out(
                corpus_report.profile.language_classifier, corpus_report.profile.forms, sides, f"{name} data"
            )


def _to_dict(corpus_report: CorpusReport) -> dict[str, object]:
    """Convert a report for `--json`: line counts and the first ten locations of each rule."""
    summary = summarize(corpus_report)
    rules = {}
    for rule in corpus_report.rules:
        rows = corpus_report.find_rows(rule.name)
        if len(rows):
            first = [str(corpus_report.locations[int(row)]) for row in rows[:FIRST_LINES]]
            rules[rule.name] = {"severity": rule.severity, "lines": len(rows), "first": first}
    return {**asdict(summary), "rules": rules, "remarks": corpus_report.remarks}


def _check_output_folder(folder: Path) -> None:
    """Reject an unusable output folder before the check, which may take long."""
    if not folder.absolute().parent.is_dir():
        raise RegardError("There is no such folder.", location=str(folder.parent), hint="Create it first.")
    if folder.exists():
        raise RegardError("The folder already exists.", location=str(folder), hint="Choose another name or remove it.")


def _make_source(
    files: list[str],
    source: str | None,
    target: str | None,
    languages: tuple[str, str] | None,
    columns: str | None,
) -> AnySourceConfig:
    """Build the corpus source from positional files or from --source and --target."""
    if target is not None and source is None:
        raise RegardError(f"The target {target} has no source.", hint="Also give the source side.")
    named_paths = [path for path in (source, target) if path is not None]
    if bool(files) == bool(named_paths):
        message = "Give the corpus either as files or with --source." if files else "No corpus was given."
        raise RegardError(message, hint="Give a file, two aligned files, or --source and --target.")
    detected = detect_source(files or named_paths, columns)
    if isinstance(detected, ImagesConfig | AudioConfig):
        media = detected.kind
        noun = "audio clips" if media == "audio" else media
        message = f"These are {noun}, but the corpus check only supports text."
        hint = (
            f"Start training: `regard train --{media}` rejects damaged files, and {noun} that are also in --validation."
        )
        raise RegardError(message, location=detected.path, hint=hint)
    return detected.model_copy(update={"languages": languages}) if languages else detected


def _require_languages(corpus: RereadableCorpus) -> tuple[str, ...]:
    languages = corpus.sources[0].languages
    if not languages:
        raise RegardError("--lingua needs the corpus languages.", hint="Give them, e.g. --languages en de.")
    return languages


def _print_diagnosis(corpus_report: CorpusReport, defects: Defects) -> None:
    console = make_console()
    corpus_summary = summarize(corpus_report)
    style = {"good": "bold green", "fair": "bold yellow", "bad": "bold red"}[corpus_summary.grade]
    console.print(Text(corpus_summary.verdict, style=style))
    share = corpus_summary.removed / max(corpus_summary.rows, 1)
    console.print(
        f"{pluralize(corpus_summary.rows, 'line')}: {corpus_summary.removed:,} to remove ({share:.2%}), "
        f"{corpus_summary.noticed:,} more to review",
        highlight=False,
    )
    for line in corpus_summary.advice:
        console.print(Text(f"- {line}"), soft_wrap=True)
    console.print()
    console.print(_make_rule_table(corpus_report))
    console.print()
    sides = {
        side.name: (side.characters, side.words, side.min_length, round(side.median_length), side.max_length)
        for side in corpus_report.statistics.sides
    }
    console.print(_make_number_table("|characters|words|shortest|median|longest", sides))
    console.print()
    if corpus_report.leaks:
        leaks = {
            f"{leak.held_out} in {leak.corpus}": (leak.lines, leak.pairs, leak.sources, leak.targets)
            for leak in corpus_report.leaks
        }
        console.print(_make_number_table("shared lines|of|same pair|same source|same target", leaks))
        console.print()
    for line in (*corpus_report.remarks, *str(defects).split("\n")):
        if line:
            console.print(Text(line), soft_wrap=True)


def _make_rule_table(corpus_report: CorpusReport) -> Table:
    table = Table("rule", "", "lines", "share", "first", box=None, pad_edge=False)
    for column in (2, 3):
        table.columns[column].justify = "right"
    for rule in corpus_report.rules:
        rows = corpus_report.find_rows(rule.name)
        if len(rows):
            style = "red" if rule.severity == "remove" else "yellow"
            first_location = corpus_report.locations[int(rows[0])]
            name = PurePath(first_location.file).name  # full paths are too long for the screen
            location_text = Text(f"{name}:{first_location.line}", overflow="fold")
            share = f"{len(rows) / len(corpus_report.verdicts):.2%}"
            table.add_row(rule.name, Text(rule.severity, style=style), f"{len(rows):,}", share, location_text)
    if not table.row_count:
        table.add_row("no findings", "", "", "", "")
    return table


def _make_number_table(headings: str, rows: Mapping[str, Sequence[int]]) -> Table:
    """Make a table of numbers with one name per row; headings are separated by |."""
    table = Table(*headings.split("|"), box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, numbers in rows.items():
        table.add_row(name, *(f"{number:,}" for number in numbers))
    return table
