"""`regard check`: find defects in a corpus, write an HTML report and a cleaned corpus."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path, PurePath
from typing import Annotated

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: TID251
from rich.table import Table  # noqa: TID251
from rich.text import Text  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.base.formatting import pluralize
from regard.cli.console import make_console
from regard.cli.options import COLUMNS_HELP, file_option, option, output_file_option
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
        help="A corpus file or folder of any supported format, or two aligned files.",
        show_default=False,
    ),
]
RuleNames = list[str] | None
EXAMPLES = """
regard check train.en train.de
regard check train.en train.de --report report.html --write clean
regard check train.en train.de --validation-source val.en --validation-target val.de
regard check reviews.tsv --strict
"""
SAMPLE = 1000  # examples at the start of each corpus that are compared with languages and with each other
FIRST_LINES = 10  # locations of a rule in the output of --json


class RereadableCorpus:
    """A corpus that can be iterated repeatedly; `defects` counts only the defects of the first pass."""

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
    source: Annotated[str | None, file_option("Source side, one sentence per line.", panel="Corpus")] = None,
    target: Annotated[
        str | None, file_option("Target side; line n translates line n of the source.", panel="Corpus")
    ] = None,
    columns: Annotated[str | None, option(COLUMNS_HELP, metavar="COLUMNS", panel="Corpus")] = None,
    languages: Annotated[
        tuple[str, str] | None,
        option("Languages of source and target, e.g. en de.", metavar="SOURCE TARGET", panel="Corpus"),
    ] = None,
    validation_source: Annotated[
        str | None,
        file_option("Validation data: a corpus file, or its source side.", panel="Held-out data, to find leakage"),
    ] = None,
    validation_target: Annotated[
        str | None, file_option("Target side of the validation data.", panel="Held-out data, to find leakage")
    ] = None,
    test_source: Annotated[
        str | None, file_option("Test data: a corpus file, or its source side.", panel="Held-out data, to find leakage")
    ] = None,
    test_target: Annotated[
        str | None, file_option("Target side of the test data.", panel="Held-out data, to find leakage")
    ] = None,
    report: Annotated[Path | None, output_file_option("Write an HTML report to this file.")] = None,
    output_folder: Annotated[
        Path | None,
        option(
            "Write the cleaned corpus and a quarantine file to this new folder.",
            "--write",
            metavar="FOLDER",
            panel="Output",
        ),
    ] = None,
    remove: Annotated[
        RuleNames, option("Also remove the lines that this rule flags. Repeatable.", metavar="RULE", panel="Rules")
    ] = None,
    keep: Annotated[
        RuleNames, option("Keep the lines that this rule flags. Repeatable.", metavar="RULE", panel="Rules")
    ] = None,
    near_duplicates: Annotated[
        bool, option("Search for near duplicates (80 bytes of memory per line).", panel="Rules")
    ] = True,
    lingua: Annotated[
        bool,
        option("Detect languages with lingua instead of profiles learned from the corpus.", "--lingua", panel="Rules"),
    ] = False,
    strict: Annotated[
        bool, option("Exit with code 1 if the verdict is: Do not train on this yet.", "--strict", panel="Output")
    ] = False,
    as_json: Annotated[
        bool, option("Print one JSON object: verdict, advice, and the lines of each rule.", "--json", panel="Output")
    ] = False,
) -> None:
    """Check a corpus for duplicates, leakage, wrong languages, encoding errors, misalignment and other defects.

    The exit code is 0 whatever the check finds, unless --strict is given or the corpus cannot be read to its end.
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
    with _make_progress() as progress:
        task = progress.add_task("reading", total=None)

        def advance(stage: str, lines: int) -> None:
            progress.update(task, description=stage, advance=lines)

        corpus_report = check_corpus(
            corpus,
            held_out,
            rules=rules,
            near_duplicates=near_duplicates,
            language_classifier=language_classifier,
            progress=advance,
        )
    corpus_report.findings += _find_differences(corpus, held_out, corpus_report)
    messages = []  # write the files before printing: a closed pipe (`| head`) must not lose them
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
    """Yield differences of texts from the declared languages, and of held-out data from the corpus."""
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
    """The result of a check for `--json`: lines are counts, and the locations of the first ten."""
    summary = summarize(corpus_report)
    rules = {}
    for rule in corpus_report.rules:
        rows = corpus_report.find_rows(rule.name)
        if len(rows):
            first = [str(corpus_report.locations[int(row)]) for row in rows[:FIRST_LINES]]
            rules[rule.name] = {"severity": rule.severity, "lines": len(rows), "first": first}
    return {**asdict(summary), "rules": rules, "remarks": corpus_report.remarks}


def _check_output_folder(folder: Path) -> None:
    """Reject an unusable output folder before the long examination."""
    if not folder.absolute().parent.is_dir():
        raise RegardError("There is no such folder.", location=str(folder.parent), hint="Create it first.")
    if folder.exists():
        raise RegardError("The folder exists already.", location=str(folder), hint="Choose another name or remove it.")


def _make_source(
    files: list[str],
    source: str | None,
    target: str | None,
    languages: tuple[str, str] | None,
    columns: str | None,
) -> AnySourceConfig:
    """Make a source from positional files or from --source and --target."""
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
        message = f"These are {noun}, and the rules of the corpus check are about text."
        hint = (
            f"Train on them: `regard train --{media}` refuses damaged files, and {noun} that are also in --validation."
        )
        raise RegardError(message, location=detected.path, hint=hint)
    return detected.model_copy(update={"languages": languages}) if languages else detected


def _require_languages(corpus: RereadableCorpus) -> tuple[str, ...]:
    languages = corpus.sources[0].languages
    if not languages:
        raise RegardError("lingua needs the languages of the corpus.", hint="Give them, e.g. --languages en de.")
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
    console.print(_make_side_table(corpus_report))
    console.print()
    if corpus_report.leaks:
        console.print(_make_leak_table(corpus_report))
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
            name = PurePath(first_location.file).name  # full paths would fill the screen
            location_text = Text(f"{name}:{first_location.line}", overflow="fold")
            share = f"{len(rows) / len(corpus_report.verdicts):.2%}"
            table.add_row(rule.name, Text(rule.severity, style=style), f"{len(rows):,}", share, location_text)
    if not table.row_count:
        table.add_row("no findings", "", "", "", "")
    return table


def _make_side_table(corpus_report: CorpusReport) -> Table:
    table = Table("", "characters", "words", "shortest", "median", "longest", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for side in corpus_report.statistics.sides:
        numbers = (side.characters, side.words, side.min_length, round(side.median_length), side.max_length)
        table.add_row(side.name, *(f"{number:,}" for number in numbers))
    return table


def _make_leak_table(corpus_report: CorpusReport) -> Table:
    table = Table("shared lines", "of", "same pair", "same source", "same target", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for leak in corpus_report.leaks:
        numbers = (leak.lines, leak.pairs, leak.sources, leak.targets)
        table.add_row(f"{leak.held_out} in {leak.corpus}", *(f"{number:,}" for number in numbers))
    return table


def _make_progress() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,} lines"), TimeElapsedColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
