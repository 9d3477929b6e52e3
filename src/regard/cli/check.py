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
from regard.config.run import AnySource
from regard.data.corpus import detect_source
from regard.data.doctor import Diagnosis, choose, examine
from regard.data.doctor.clean import write
from regard.data.doctor.explain import samples
from regard.data.doctor.lingua import Lingua
from regard.data.doctor.report import page
from regard.data.doctor.words import plural, summary
from regard.data.example import Defects, Example
from regard.data.open import QUARANTINE_FILE
from regard.data.readers import read

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE]...", help="A file of any kind, or two aligned files.", show_default=False),
]
Rules = list[str] | None


class Reread:
    """Sources that can be read again and again; what the readers met is counted in the first reading only."""

    def __init__(self, *sources: AnySource) -> None:
        self.sources = sources
        self.defects = Defects()
        self._first = True

    def __iter__(self) -> Iterator[Example]:
        defects, self._first = (self.defects if self._first else Defects()), False
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
    write_to: Annotated[
        Path | None, typer.Option("--write", metavar="DIR", help="Write the cleaned corpus and the quarantine file.")
    ] = None,
    remove: Annotated[
        Rules, typer.Option(metavar="RULE", help="Leave out lines of this rule, too. Repeat for more.")
    ] = None,
    keep: Annotated[Rules, typer.Option(metavar="RULE", help="Keep lines of this rule. Repeat for more.")] = None,
    near: Annotated[bool, typer.Option(help="Look for near duplicates (80 bytes of memory a line).")] = True,
    lingua: Annotated[
        bool, typer.Option("--lingua", help="Tell languages by lingua instead of by the corpus.")
    ] = False,
) -> None:
    """Examine a corpus: duplicates, leaks, languages, encodings, alignment, and what else keeps a model from learning.

    Ends with code 0 whatever it finds, unless the corpus cannot be read to its end.
    """
    _refuse_early(report, write_to)
    corpus = Reread(_source(files or [], source, target, languages))
    held_out = {
        name: Reread(_source([], first, second, languages))
        for name, first, second in (
            ("validation", validation_source, validation_target),
            ("test", test_source, test_target),
        )
        if first is not None or second is not None
    }
    judge = Lingua(_languages(corpus)) if lingua else None
    rules = choose(tuple(remove or ()), tuple(keep or ()))
    with _progress() as progress:
        task = progress.add_task("reading", total=None)

        def advance(stage: str, lines: int) -> None:
            progress.update(task, description=stage, advance=lines)

        found = examine(corpus, held_out, rules=rules, near=near, judge=judge, progress=advance)
    written = []  # files first: whoever reads only the top of the table gets them all the same
    if report is not None:
        name = " · ".join(path for source in corpus.sources for path in _paths(source))
        content = page(name, found, samples(found, corpus), corpus.defects)
        write_atomic(report, content.encode("utf-8", "backslashreplace"))
        written.append(f"Report: {report}")
    if write_to is not None and found.broken is None:
        done = write(found, corpus.sources, corpus, write_to)
        written.append(
            f"Written to {write_to}: {plural(done.kept, 'line')} kept, {done.removed:,} in {QUARANTINE_FILE}."
        )
    _show(found, corpus.defects)
    for line in written:
        typer.echo(line)
    if found.broken is not None:
        raise found.broken


def _refuse_early(report: Path | None, folder: Path | None) -> None:
    """What could not be written is said before a long examination, not after it."""
    for path in (report, folder):
        if path is not None and not path.absolute().parent.is_dir():
            raise RegardError("There is no such folder.", where=str(path.parent), fix="Make it first.")
    if report is not None and report.is_dir():
        raise RegardError("The report is a file, and this is a folder.", where=str(report), fix="Add report.html.")
    if folder is not None and folder.exists():
        raise RegardError("The folder exists already.", where=str(folder), fix="Choose another name or remove it.")


def _source(files: list[str], source: str | None, target: str | None, languages: tuple[str, str] | None) -> AnySource:
    """What was given as files or by name, as a source."""
    if target is not None and source is None:
        raise RegardError(f"{target} has no partner.", fix="Give the source side, too.")
    named = [path for path in (source, target) if path is not None]
    if bool(files) == bool(named):
        raise RegardError("Which corpus?", fix="Give a file, two aligned files, or --source and --target.")
    guessed = detect_source(files or named)
    return guessed.model_copy(update={"languages": languages}) if languages else guessed


def _languages(corpus: Reread) -> tuple[str, ...]:
    known = corpus.sources[0].languages
    if not known:
        raise RegardError("lingua must know the languages.", fix="Give them: --languages en de.")
    return known


def _paths(source: AnySource) -> list[str]:
    fields = ("source", "target") if source.kind == "lines" else ("path",)
    return [path for path in (getattr(source, field) for field in fields) if path]


def _show(found: Diagnosis, defects: Defects) -> None:
    console = Console()
    told = summary(found)
    style = {"good": "bold green", "fair": "bold yellow", "bad": "bold red"}[told.mood]
    console.print(Text(told.verdict, style=style))
    share = told.removed / max(told.rows, 1)
    console.print(
        f"{plural(told.rows, 'line')}: {told.removed:,} to leave out ({share:.2%}), {told.noticed:,} more to look at",
        highlight=False,
    )
    for line in told.advice:
        console.print(Text(f"- {line}"), soft_wrap=True)
    console.print()
    console.print(_table(found))
    console.print()
    console.print(_sides(found))
    console.print()
    if found.leaks:
        console.print(_leaks(found))
        console.print()
    for line in (*found.remarks, *str(defects).split("\n")):
        if line:
            console.print(Text(line), soft_wrap=True)


def _table(found: Diagnosis) -> Table:
    table = Table("rule", "", "lines", "share", "first", box=None, pad_edge=False)
    for column in (2, 3):
        table.columns[column].justify = "right"
    for rule in found.rules:
        rows = found.rows(rule.name)
        if len(rows):
            style = "red" if rule.severity == "remove" else "yellow"
            first = found.places[int(rows[0])]
            where = Text(f"{PurePath(first.file).name}:{first.line}", overflow="fold")  # whole paths fill the screen
            share = f"{len(rows) / len(found.verdicts):.2%}"
            table.add_row(rule.name, Text(rule.severity, style=style), f"{len(rows):,}", share, where)
    if not table.row_count:
        table.add_row("nothing found", "", "", "", "")
    return table


def _sides(found: Diagnosis) -> Table:
    table = Table("", "characters", "words", "shortest", "median", "longest", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for side in found.statistics.sides:
        numbers = (side.characters, side.words, side.shortest, round(side.median), side.longest)
        table.add_row(side.name, *(f"{number:,}" for number in numbers))
    return table


def _leaks(found: Diagnosis) -> Table:
    table = Table("shared lines", "of", "same pair", "same source", "same target", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for leak in found.leaks:
        numbers = (leak.lines, leak.pairs, leak.sources, leak.targets)
        table.add_row(f"{leak.held_out} in {leak.corpus}", *(f"{number:,}" for number in numbers))
    return table


def _progress() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,} lines"), TimeElapsedColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
