"""`regard score`: how likely a model finds texts that are given."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.streams import lines_of, progress, refuse_early, with_partners

if TYPE_CHECKING:
    from regard.pipeline.scorer import ScoredText


def score(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts to score; for a translator, translations.")
    ] = None,
    given: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Score every line of a file instead.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For a translator: what line n of the texts translates.")
    ] = None,
    of: Annotated[
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
    refuse_early(texts, given, None)
    refuse_early(None, source, None)
    if source is not None and of is not None:
        raise RegardError("--source and --of were both given.", fix="Give one of them.")
    from regard.pipeline.batches import chunks  # torch: only when it is needed
    from regard.pipeline.scorer import Scorer

    scorer = Scorer.load(folder)
    with ExitStack() as stack:
        lines, total, size = lines_of(texts, given)
        told = stack.enter_context(progress("scoring", total, hidden=size == 1 or sys.stdout.isatty()))
        for some, partners in with_partners(chunks(lines, size), source, of):
            for one in scorer.score(some, partners, target_language=into, window=window, batch_tokens=batch_tokens):
                _write(one, as_json)
            sys.stdout.flush()
            told(len(some))


def _write(one: "ScoredText", as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({**asdict(one), "total": one.total_logprob}, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{one.total_logprob:.4f}\t{len(one.logprobs)}\n")
