"""`regard generate`: text that goes on where a prompt stops, shown as it is written."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli import looked_for
from regard.cli.looked_for import Way
from regard.cli.opened import opened

if TYPE_CHECKING:
    from regard.pipeline.answers import GeneratedText
    from regard.pipeline.writer import TextGenerator


def generate(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    prompt: Annotated[str, typer.Argument(help="How the text begins.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens to write.")] = 200,
    temperature: looked_for.Temperature = 0.8,
    top_k: looked_for.TopK = None,
    top_p: looked_for.TopP = 0.95,
    min_p: looked_for.MinP = None,
    typical: looked_for.Typical = None,
    repetition: looked_for.Repetition = 1.0,
    ngram: looked_for.Ngram = None,
    seed: looked_for.Seed = None,
    count: Annotated[int, typer.Option(min=1, help="So many texts; also the size of a beam.")] = 1,
    search: Annotated[
        Way, typer.Option(help="How texts are looked for; beam, diverse and stochastic draw no words.")
    ] = Way.sample,
    forbid: Annotated[list[str] | None, typer.Option(metavar="PHRASE", help="Must not be in it. Repeat.")] = None,
    draft: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A quick model that guesses ahead: texts as probable, sooner.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a text: prompt, text, score, tokens...")
    ] = False,
) -> None:
    """Write on from a prompt. One text appears as it is written, the prompt first."""
    from regard.decode.filters import Filters  # torch: only when it is needed
    from regard.pipeline.writer import TextGenerator

    looked_for.refuse_unused(context, search)
    filters = Filters(temperature, top_k, top_p, min_p, typical, repetition, ngram)
    writer = opened(folder, TextGenerator)
    if draft is not None:
        if count > 1 or search is not Way.sample or forbid:
            raise RegardError("A draft guesses for one text without constraints.", fix="Leave the others out.")
        found, how = writer.generate_with_draft(
            opened(draft, TextGenerator), prompt, tokens, filters=filters, seed=seed
        )
        _write(prompt, found, as_json)
        sys.stderr.write(
            f"{how.accepted} of {how.proposed} guesses taken; {how.steps} steps for {len(found.tokens)} tokens\n"
        )
    elif count == 1 and search is Way.sample and not forbid and not as_json:
        _stream(writer, prompt, tokens=tokens, filters=filters, seed=seed)
    else:
        way = looked_for.search_of(search, count, 1.0, filters)
        (first,) = writer.generate([prompt], tokens, way, n_best=count, forbidden=forbid or (), seed=seed)
        for one in (first, *first.alternatives):
            _write(prompt, one, as_json)


def _stream(writer: "TextGenerator", prompt: str, **options: Any) -> None:
    pieces = writer.stream(prompt, **options)
    sys.stdout.write(prompt)
    for piece in pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")


def _write(prompt: str, one: "GeneratedText", as_json: bool) -> None:
    if as_json:
        told = {name: value for name, value in asdict(one).items() if name not in ("alternatives", "utility")}
        sys.stdout.write(json.dumps({"prompt": prompt, **told}, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{prompt}{one.text}\n")
