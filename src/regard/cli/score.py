"""`regard score`: the log-probability that a model assigns to given texts."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.options import (
    INPUT_PANEL,
    OUTPUT_PANEL,
    BatchTokens,
    InputFile,
    ModelArgument,
    TargetLanguage,
    Window,
    input_file_option,
    option,
)
from regard.cli.progress import show_progress
from regard.cli.text_input import check_paths, read_lines, zip_file

if TYPE_CHECKING:
    from regard.pipeline.scorer import ScoredText

EXAMPLES = """
regard score my-model "Wo ist Tom?" --source-text "Where is Tom?"
regard score my-model --input test.de --source test.en
regard score my-book --input chapter.txt --json
"""


def score(
    folder: ModelArgument,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts to score; for a translation model: translations."),
    ] = None,
    input_file: InputFile = None,
    source: Annotated[
        Path | None, input_file_option("Sources for a translation model: line n belongs to text n.")
    ] = None,
    source_text: Annotated[
        str | None,
        option("Source for a translation model, the same for all texts.", metavar="TEXT", panel=INPUT_PANEL),
    ] = None,
    into: TargetLanguage = None,
    window: Window = None,
    batch_tokens: BatchTokens = 4096,
    as_json: Annotated[
        bool,
        option(
            "Print one JSON object per text: tokens, logprobs, best_logprobs, correct.", "--json", panel=OUTPUT_PANEL
        ),
    ] = False,
) -> None:
    """Score texts under a model: arguments, lines of a file, or lines of standard input.

    Prints one line per text: its log-probability in nats, a tab, and its number of tokens. Both include eos.
    """
    check_paths(texts, input_file)
    if source is not None and source_text is not None:
        raise RegardError("--source and --source-text were both given.", fix="Give one of them.")
    from regard.pipeline.encoding import chunks  # imports torch: only when needed
    from regard.pipeline.scorer import Scorer

    scorer = Scorer.load(folder)
    if scorer.settings.family == "encoder_decoder" and source is None and source_text is None:
        raise RegardError(
            "This is a translation model: it scores translations of given sources.",
            where=str(folder),
            fix="Add --source-text TEXT, or --source FILE with one source per line.",
        )
    with ExitStack() as stack:
        lines, total, chunk_size = read_lines(texts, input_file)
        is_waiting = chunk_size > 1 and not sys.stdout.isatty()
        advance = stack.enter_context(show_progress("scoring", total)) if is_waiting else lambda _: None
        for chunk, chunk_sources in zip_file(chunks(lines, chunk_size), source, source_text):
            for scored in scorer.score(
                chunk, chunk_sources, target_language=into, window=window, batch_tokens=batch_tokens
            ):
                _write(scored, as_json)
            sys.stdout.flush()
            advance(len(chunk))


def _write(scored: "ScoredText", as_json: bool) -> None:
    if as_json:
        record = {**asdict(scored), "total_logprob": scored.total_logprob}
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{scored.total_logprob:.4f}\t{len(scored.logprobs)}\n")
