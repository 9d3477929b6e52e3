"""`regard generate`: text that goes on where a prompt stops, shown as it is written."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli import search_options
from regard.cli.loading import load_as
from regard.cli.search_options import SearchKind

if TYPE_CHECKING:
    from regard.pipeline.generator import TextGenerator
    from regard.pipeline.results import GeneratedText


def generate(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    prompt: Annotated[str, typer.Argument(help="How the text begins.")] = "",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="The most tokens to write.")] = 200,
    temperature: search_options.Temperature = 0.8,
    top_k: search_options.TopK = None,
    top_p: search_options.TopP = 0.95,
    min_p: search_options.MinP = None,
    typical_p: search_options.TypicalP = None,
    repetition_penalty: search_options.RepetitionPenalty = 1.0,
    no_repeat_ngram: search_options.NoRepeatNgram = None,
    seed: search_options.Seed = None,
    count: Annotated[int, typer.Option(min=1, help="So many texts; also the size of a beam.")] = 1,
    search: Annotated[
        SearchKind, typer.Option(help="How texts are looked for; beam, diverse and stochastic draw no words.")
    ] = SearchKind.sample,
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
    from regard.pipeline.generator import TextGenerator

    search_options.check_unused_options(context, search)
    filters = Filters(temperature, top_k, top_p, min_p, typical_p, repetition_penalty, no_repeat_ngram)
    text_generator = load_as(folder, TextGenerator)
    if draft is not None:
        if count > 1 or search is not SearchKind.sample or forbid:
            raise RegardError("A draft guesses for one text without constraints.", fix="Leave the others out.")
        result, statistics = text_generator.generate_with_draft(
            load_as(draft, TextGenerator), prompt, max_new_tokens, filters=filters, seed=seed
        )
        _write(prompt, result, as_json)
        sys.stderr.write(
            f"{statistics.accepted} of {statistics.proposed} guesses taken; {statistics.steps} steps for {len(result.tokens)} tokens\n"
        )
    elif count == 1 and search is SearchKind.sample and not forbid and not as_json:
        _stream(text_generator, prompt, max_new_tokens=max_new_tokens, filters=filters, seed=seed)
    else:
        strategy = search_options.make_search(search, count, 1.0, filters)
        (best_result,) = text_generator.generate(
            [prompt], max_new_tokens, strategy, n_best=count, forbidden=forbid or (), seed=seed
        )
        for candidate in (best_result, *best_result.alternatives):
            _write(prompt, candidate, as_json)


def _stream(text_generator: "TextGenerator", prompt: str, **options: Any) -> None:
    chunks = text_generator.stream(prompt, **options)
    sys.stdout.write(prompt)
    for chunk in chunks:
        sys.stdout.write(chunk)
        sys.stdout.flush()
    sys.stdout.write("\n")


def _write(prompt: str, result: "GeneratedText", as_json: bool) -> None:
    if as_json:
        record = {name: value for name, value in asdict(result).items() if name not in ("alternatives", "utility")}
        sys.stdout.write(json.dumps({"prompt": prompt, **record}, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{prompt}{result.text}\n")
