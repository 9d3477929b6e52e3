"""`regard score`: how likely a model finds texts that are given."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.text_input import check_paths, read_lines, show_progress, zip_file

if TYPE_CHECKING:
    from regard.pipeline.scorer import ScoredText


def score(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts to score; for a translator, translations.")
    ] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Score every line of a file instead.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For a translator: what line n of the texts translates.")
    ] = None,
    source_text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For a translator: the one source of all texts.")
    ] = None,
    into: Annotated[str | None, typer.Option(metavar="LANGUAGE", help="For a model of many languages: which.")] = None,
    window: Annotated[int | None, typer.Option(min=2, help="Tokens of a text that a writer reads at once.")] = None,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Tokens in a batch.")] = 4096,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: tokens, logs, best, right.")] = False,
) -> None:
    """Log-probabilities of texts: arguments, lines of a file, or lines of standard input.

    Line n of what comes out belongs to line n of what goes in: the log-probability of the text in nats, a tab, and the
    number of its tokens, END counted in both.
    """
    check_paths(texts, input_file, None)
    check_paths(None, source, None)
    if source is not None and source_text is not None:
        raise RegardError("--source and --of were both given.", fix="Give one of them.")
    from regard.pipeline.encoding import chunks  # torch: only when it is needed
    from regard.pipeline.scorer import Scorer

    scorer = Scorer.load(folder)
    with ExitStack() as stack:
        lines, total, chunk_size = read_lines(texts, input_file)
        advance = stack.enter_context(show_progress("scoring", total, is_hidden=chunk_size == 1 or sys.stdout.isatty()))
        for chunk, chunk_sources in zip_file(chunks(lines, chunk_size), source, source_text):
            for scored in scorer.score(
                chunk, chunk_sources, target_language=into, window=window, batch_tokens=batch_tokens
            ):
                _write(scored, as_json)
            sys.stdout.flush()
            advance(len(chunk))


def _write(scored: "ScoredText", as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({**asdict(scored), "total": scored.total_logprob}, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{scored.total_logprob:.4f}\t{len(scored.logprobs)}\n")
