"""`regard check`: the corpus doctor. A table on the terminal, a report to read, a cleaned corpus to train on."""

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Annotated

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: TID251
from rich.table import Table  # noqa: TID251
from rich.text import Text  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.base.plural import pluralize
from regard.config.run import AnySource
from regard.data.corpus import detect_source
from regard.data.doctor import Diagnosis, examine, select_rules
from regard.data.doctor.clean import write_cleaned
from regard.data.doctor.detectors.lingua import LinguaJudge
from regard.data.doctor.findings import sample_flagged
from regard.data.doctor.report import render_page
from regard.data.doctor.summary import summarize
from regard.data.example import Defects, Example
from regard.data.readers import read
from regard.data.readers.text_files import QUARANTINE_FILE

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE]...", help="A file of any kind, or two aligned files.", show_default=False),
]
RuleNames = list[str] | None


class RereadableCorpus:
    """Sources that can be read again and again; what the readers met is counted in the first reading only."""

    def __init__(self, *sources: AnySource) -> None:
        self.sources = sources
        self.defects = Defects()
        self._is_first_reading = True

    def __iter__(self) -> Iterator[Example]:
        defects, self._is_first_reading = (self.defects if self._is_first_reading else Defects()), False
        for source in self.sources:
            yield from read(source, defects)


def check(
    files: Paths = None,
    source: Annotated[str | None, typer.Option(help="The source side, one sentence a line.")] = None,
    target: Annotated[str | None, typer.Option(help="The target side: line n translates line n.")] = None,
    languages: Annotated[tuple[str, str] | None, typer.Option(help="The languages of both sides, e.g. en de.")] = None,
    validation_source: Annotated[
        str | None, typer.Option(help="Validation data: a file of any kind, or its source side.")
    ] = None,
    validation_target: Annotated[str | None, typer.Option(help="The target side of the validation data.")] = None,
    test_source: Annotated[str | None, typer.Option(help="Test data: a file of any kind, or its source side.")] = None,
    test_target: Annotated[str | None, typer.Option(help="The target side of the test data.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to read in a browser.")] = None,
    output_folder: Annotated[
        Path | None, typer.Option("--write", metavar="DIR", help="Write the cleaned corpus and the quarantine file.")
    ] = None,
    remove: Annotated[
        RuleNames, typer.Option(metavar="RULE", help="Leave out lines of this rule, too. Repeat for more.")
    ] = None,
    keep: Annotated[RuleNames, typer.Option(metavar="RULE", help="Keep lines of this rule. Repeat for more.")] = None,
    near_duplicates: Annotated[bool, typer.Option(help="Look for near duplicates (80 bytes of memory a line).")] = True,
    lingua: Annotated[
        bool, typer.Option("--lingua", help="Tell languages by lingua instead of by the corpus.")
    ] = False,
) -> None:
    """Examine a corpus: duplicates, leaks, languages, encodings, alignment, and what else keeps a model from learning.

    Ends with code 0 whatever it finds, unless the corpus cannot be read to its end.
    """
    _check_outputs(report, output_folder)
    corpus = RereadableCorpus(_make_source(files or [], source, target, languages))
    held_out = {
        name: RereadableCorpus(_make_source([], source_path, target_path, languages))
        for name, source_path, target_path in (
            ("validation", validation_source, validation_target),
            ("test", test_source, test_target),
        )
        if source_path is not None or target_path is not None
    }
    judge = LinguaJudge(_require_languages(corpus)) if lingua else None
    rules = select_rules(tuple(remove or ()), tuple(keep or ()))
    with _make_progress() as progress:
        task = progress.add_task("reading", total=None)

        def advance(stage: str, lines: int) -> None:
            progress.update(task, description=stage, advance=lines)

        diagnosis = examine(
            corpus, held_out, rules=rules, near_duplicates=near_duplicates, judge=judge, progress=advance
        )
    messages = []  # files first: whoever reads only the top of the table gets them all the same
    if report is not None:
        name = " · ".join(path for source in corpus.sources for path in source.paths)
        content = render_page(name, diagnosis, sample_flagged(diagnosis, corpus), corpus.defects)
        write_atomic(report, content.encode("utf-8", "backslashreplace"))
        messages.append(f"Report: {report}")
    if output_folder is not None and diagnosis.read_error is None:
        result = write_cleaned(diagnosis, corpus.sources, corpus, output_folder)
        messages.append(
            f"Written to {output_folder}: {pluralize(result.kept, 'line')} kept, {result.removed:,} in {QUARANTINE_FILE}."
        )
    _print_diagnosis(diagnosis, corpus.defects)
    for line in messages:
        typer.echo(line)
    if diagnosis.read_error is not None:
        raise diagnosis.read_error


def _check_outputs(report: Path | None, folder: Path | None) -> None:
    """What could not be written is said before a long examination, not after it."""
    for path in (report, folder):
        if path is not None and not path.absolute().parent.is_dir():
            raise RegardError("There is no such folder.", where=str(path.parent), fix="Make it first.")
    if report is not None and report.is_dir():
        raise RegardError("The report is a file, and this is a folder.", where=str(report), fix="Add report.html.")
    if folder is not None and folder.exists():
        raise RegardError("The folder exists already.", where=str(folder), fix="Choose another name or remove it.")


def _make_source(
    files: list[str], source: str | None, target: str | None, languages: tuple[str, str] | None
) -> AnySource:
    """What was given as files or by name, as a source."""
    if target is not None and source is None:
        raise RegardError(f"{target} has no partner.", fix="Give the source side, too.")
    named_paths = [path for path in (source, target) if path is not None]
    if bool(files) == bool(named_paths):
        raise RegardError("Which corpus?", fix="Give a file, two aligned files, or --source and --target.")
    detected = detect_source(files or named_paths)
    return detected.model_copy(update={"languages": languages}) if languages else detected


def _require_languages(corpus: RereadableCorpus) -> tuple[str, ...]:
    languages = corpus.sources[0].languages
    if not languages:
        raise RegardError("lingua must know the languages.", fix="Give them: --languages en de.")
    return languages


def _print_diagnosis(diagnosis: Diagnosis, defects: Defects) -> None:
    console = Console()
    corpus_summary = summarize(diagnosis)
    style = {"good": "bold green", "fair": "bold yellow", "bad": "bold red"}[corpus_summary.grade]
    console.print(Text(corpus_summary.verdict, style=style))
    share = corpus_summary.removed / max(corpus_summary.rows, 1)
    console.print(
        f"{pluralize(corpus_summary.rows, 'line')}: {corpus_summary.removed:,} to leave out ({share:.2%}), {corpus_summary.noticed:,} more to look at",
        highlight=False,
    )
    for line in corpus_summary.advice:
        console.print(Text(f"- {line}"), soft_wrap=True)
    console.print()
    console.print(_make_rule_table(diagnosis))
    console.print()
    console.print(_make_side_table(diagnosis))
    console.print()
    if diagnosis.leaks:
        console.print(_make_leak_table(diagnosis))
        console.print()
    for line in (*diagnosis.remarks, *str(defects).split("\n")):
        if line:
            console.print(Text(line), soft_wrap=True)


def _make_rule_table(diagnosis: Diagnosis) -> Table:
    table = Table("rule", "", "lines", "share", "first", box=None, pad_edge=False)
    for column in (2, 3):
        table.columns[column].justify = "right"
    for rule in diagnosis.rules:
        rows = diagnosis.find_rows(rule.name)
        if len(rows):
            style = "red" if rule.severity == "remove" else "yellow"
            first_location = diagnosis.locations[int(rows[0])]
            location_text = Text(
                f"{PurePath(first_location.file).name}:{first_location.line}", overflow="fold"
            )  # whole paths fill the screen
            share = f"{len(rows) / len(diagnosis.verdicts):.2%}"
            table.add_row(rule.name, Text(rule.severity, style=style), f"{len(rows):,}", share, location_text)
    if not table.row_count:
        table.add_row("nothing found", "", "", "", "")
    return table


def _make_side_table(diagnosis: Diagnosis) -> Table:
    table = Table("", "characters", "words", "shortest", "median", "longest", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for side in diagnosis.statistics.sides:
        numbers = (side.characters, side.words, side.shortest, round(side.median), side.longest)
        table.add_row(side.name, *(f"{number:,}" for number in numbers))
    return table


def _make_leak_table(diagnosis: Diagnosis) -> Table:
    table = Table("shared lines", "of", "same pair", "same source", "same target", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for leak in diagnosis.leaks:
        numbers = (leak.lines, leak.pairs, leak.sources, leak.targets)
        table.add_row(f"{leak.held_out} in {leak.corpus}", *(f"{number:,}" for number in numbers))
    return table


def _make_progress() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,} lines"), TimeElapsedColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
