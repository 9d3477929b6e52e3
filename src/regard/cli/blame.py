"""`regard blame`: find what taught a model a word. `regard.blame` does the work; this file displays it."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251
from rich.table import Table  # noqa: TID251
from rich.text import Text  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import escape_control_characters, format_duration, pluralize, truncate
from regard.cli.console import make_console, show_events
from regard.cli.options import INPUT_PANEL, ModelArgument, TargetLanguage, input_file_option, option

if TYPE_CHECKING:
    from regard.blame.candidates import BlameCandidate
    from regard.blame.evidence import BlameResult
    from regard.blame.question import WordQuestion

EXAMPLES = """
regard blame my-model "Where is the bank?" --word Ufer
regard blame my-model "Where is the bank?" --word Ufer --prove
regard blame my-model --input questions.tsv --prove --json
regard blame my-book "The whale is a fish." --word fish
"""
MAX_CHARACTERS = 60  # of each side of a pair


class RankingName(StrEnum):
    """Rankings of candidates: equal words of the source, or similar states of the decoder."""

    lexical = "lexical"
    cosine = "cosine"


def blame(
    folder: ModelArgument,
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="The source; or a text that a language model wrote.")
    ] = None,
    word: Annotated[str | None, option("The wrong word in the output.", metavar="WORD", panel=INPUT_PANEL)] = None,
    input_file: Annotated[
        Path | None, input_file_option("Read questions from a file: source, tab, word. They share replays.", "--input")
    ] = None,
    target_language: TargetLanguage = None,
    by: Annotated[
        RankingName, option("How candidates are ranked.", metavar=f"[{'|'.join(RankingName)}]")
    ] = RankingName.lexical,
    count: Annotated[int, option("Number of candidates.", "--candidates", min=1)] = 10,
    should_prove: Annotated[
        bool, option("Train again without the candidates, and compare with random samples.", "--prove")
    ] = False,
    as_json: Annotated[bool, option("Print one JSON object per question.", "--json")] = False,
) -> None:
    """Find the training samples that taught a model a wrong word.

    MODEL is the run folder of a translation model or a language model. Candidates are training samples with the word.
    With --prove, Regard repeats the run without them and prints how the word's log-odds change, compared with five runs
    without random samples. Replays are kept in MODEL/blame; the same command continues after Ctrl-C.
    """
    texts = _read_questions(source, word, input_file)
    from regard.blame.candidates import CandidateSearch  # these import torch: only when needed
    from regard.blame.evidence import find_causes
    from regard.blame.question import ask
    from regard.blame.replays import Replays
    from regard.blame.run import open_run

    pipeline, shards = open_run(folder)
    search = CandidateSearch(shards, pipeline.make_scorer(1.0))
    questions = [ask(pipeline, text, wrong, target_language) for text, wrong in texts]
    candidates = [search.find(question, count, by.value) for question in questions]
    results: list[BlameResult | None] = [None] * len(questions)
    if not as_json:
        for question, found in zip(questions, candidates, strict=True):
            _print_candidates(question, found)
    if should_prove:
        with show_events(is_stderr=True) as listener:
            results[:] = find_causes(questions, candidates, Replays(folder, [listener]), shards, _announce)
    for question, found, result in zip(questions, candidates, results, strict=True):
        if as_json:
            typer.echo(json.dumps(_to_dict(question, found, result), ensure_ascii=False))
        elif result is not None:
            typer.echo(f"\n'{question.word}': " + "\n".join(_describe(result, found)))


def _read_questions(source: str | None, word: str | None, input_file: Path | None) -> list[tuple[str, str]]:
    hint = "Give a source and --word, or --input with a source, a tab and a word per line."
    if input_file is None:
        if source is None or not word:
            raise RegardError("There is no question.", hint=hint)
        return [(source, word)]
    if source is not None or word is not None:
        raise RegardError("A question and --input were both given.", hint=hint)
    from regard.cli.text_input import read_lines  # only when needed

    questions = []
    for number, line in enumerate(read_lines(None, input_file)[0], 1):
        text, _, wrong = line.rpartition("\t")
        if not text or not wrong:
            raise RegardError("The line is not a question.", location=f"{input_file}:{number}", hint=hint)
        questions.append((text, wrong))
    return questions


def _announce(count: int, seconds: float | None) -> None:
    duration = "" if seconds is None else f", about {format_duration(seconds)} each"
    typer.echo(
        f"At most {pluralize(count, 'replay')} of the run{duration}. Ctrl-C stops; the same command continues.",
        err=True,
    )


def _print_candidates(question: "WordQuestion", candidates: "list[BlameCandidate]") -> None:
    typer.echo(f"output: {escape_control_characters(question.output)}")
    if not candidates:
        typer.echo(f"No training sample contains '{question.word}'.")
        return
    table = Table("", "lexical", "cosine", "location", "sample", box=None)
    for number, candidate in enumerate(candidates, 1):
        copies = f" and {pluralize(len(candidate.locations) - 1, 'copy', 'copies')}" * (len(candidate.locations) > 1)
        texts = (candidate.source, candidate.target)
        sample = " -> ".join(truncate(escape_control_characters(text), MAX_CHARACTERS) for text in texts if text)
        scores = f"{candidate.lexical:.2f}", f"{candidate.cosine:.3f}"
        table.add_row(str(number), *scores, Text(f"{candidate.locations[0]}{copies}"), Text(sample))
    make_console().print(table)


def _describe(result: "BlameResult", candidates: "list[BlameCandidate]") -> Iterator[str]:
    """Yield the lines about a proof."""
    numbers = ", ".join(map(str, result.group))
    yield (
        f"taught by {'sample' if len(result.group) == 1 else 'samples'} {numbers}"
        if result.group
        else "no small group of samples explains this word."
    )
    without = f"without {numbers}" if result.group else f"without all {len(candidates)} candidates"
    yield f"  log-odds {result.before:.2f}, {without} {result.after:.2f} (change {result.change:+.2f})"
    low, high = min(result.random_changes), max(result.random_changes)
    count = len(result.random_changes)
    yield f"  without random samples: change {low:+.2f} to {high:+.2f} in {count} replays (limit: {result.limit:.2f})"
    if result.validation_before is not None and result.validation_after is not None:
        yield f"  validation loss {result.validation_before:.4f}, without them {result.validation_after:.4f}"


def _to_dict(
    question: "WordQuestion", candidates: "list[BlameCandidate]", result: "BlameResult | None"
) -> dict[str, Any]:
    entry: dict[str, Any] = {"source": question.source, "word": question.word, "output": question.output}
    entry["candidates"] = [asdict(candidate) for candidate in candidates]
    if result is not None:
        entry["proof"] = {**asdict(result), "change": result.change}
    return entry
