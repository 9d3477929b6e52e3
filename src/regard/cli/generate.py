"""`regard generate`: continue a prompt with a language model, or sample images with a pixel model."""

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli import search_options
from regard.cli.generate_images import ImageRequest, check_kind, generate_images, generates_images
from regard.cli.options import OUTPUT_PANEL, SEARCH_PANEL, ModelArgument, check_model, check_output_folder, option
from regard.cli.search_options import SearchKind
from regard.cli.text_input import load_as

if TYPE_CHECKING:
    from regard.tasks.causal_lm.generator import TextGenerator
    from regard.tasks.results import GeneratedText

_image = partial(option, panel="Images")
EXAMPLES = """
regard generate my-book "ROMEO:" --max-new-tokens 100
regard generate my-book "ROMEO:" --temperature 0.5 --seed 1
regard generate my-book "Once upon a time" --count 3 --json
regard generate my-shoes --label boot --count 4 --out boots
regard generate my-shoes --complete shoe.png --out completed
"""


def generate(
    context: typer.Context,
    folder: ModelArgument,
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The text to continue.")] = "",
    max_new_tokens: Annotated[int, option("Maximum number of tokens to generate.", min=1, panel=OUTPUT_PANEL)] = 200,
    temperature: search_options.Temperature = 0.8,
    top_k: search_options.TopK = None,
    top_p: search_options.TopP = 0.95,
    min_p: search_options.MinP = None,
    typical_p: search_options.TypicalP = None,
    repetition_penalty: search_options.RepetitionPenalty = 1.0,
    no_repeat_ngram: search_options.NoRepeatNgram = None,
    seed: search_options.Seed = None,
    count: Annotated[
        int, option("Number of texts or images; also the beam size of a beam search.", min=1, panel=OUTPUT_PANEL)
    ] = 1,
    search: search_options.SearchOption = SearchKind.sample,
    forbid: Annotated[
        list[str] | None,
        option("Phrase that the text must not contain. Repeatable.", metavar="PHRASE", panel=SEARCH_PANEL),
    ] = None,
    draft: Annotated[
        Path | None,
        option(
            "Smaller model for speculative decoding: same distribution, less time.",
            metavar="MODEL",
            panel=SEARCH_PANEL,
            callback=check_model,
        ),
    ] = None,
    as_json: Annotated[
        bool, option("Print one JSON object per text: prompt, text, score, tokens, ...", "--json", panel=OUTPUT_PANEL)
    ] = False,
    label: Annotated[str | None, _image("Label of the images.", metavar="LABEL")] = None,
    complete: Annotated[
        list[Path] | None,
        _image("Keep the upper half of this image and sample the rest. Repeatable.", metavar="FILE"),
    ] = None,
    rows: Annotated[int | None, _image("With --complete: rows to keep.", min=1)] = None,
    out: Annotated[
        Path | None, _image("Folder for the images, PNG files.", metavar="FOLDER", callback=check_output_folder)
    ] = None,
) -> None:
    """Continue a prompt and stream the text, or sample images with a pixel model."""
    from regard.decode.filters import Filters  # imports torch: only when needed
    from regard.tasks.causal_lm.generator import TextGenerator

    search_options.check_unused_options(context, search)
    filters = Filters(temperature, top_k, top_p, min_p, typical_p, repetition_penalty, no_repeat_ngram)
    is_image = generates_images(folder)
    check_kind(context, is_image=is_image)
    if is_image:
        generate_images(folder, ImageRequest(out, label, complete or (), rows, count, seed), filters)
        return
    text_generator = load_as(folder, TextGenerator)
    if draft is not None:
        if count > 1 or search is not SearchKind.sample or forbid:
            raise RegardError(
                "--draft samples a single text and cannot be combined with --count, --search or --forbid.",
                hint="Leave them out, or leave out --draft.",
            )
        result, statistics = text_generator.generate_with_draft(
            load_as(draft, TextGenerator), prompt, max_new_tokens, filters=filters, seed=seed
        )
        _write(prompt, result, as_json)
        sys.stderr.write(
            f"{statistics.accepted} of {statistics.proposed} draft tokens accepted; "
            f"{statistics.steps} steps for {len(result.tokens)} tokens\n"
        )
    elif count == 1 and search is SearchKind.sample and not forbid and not as_json:
        _stream(text_generator, prompt, max_new_tokens=max_new_tokens, filters=filters, seed=seed)
    else:
        # Several texts are the best hypotheses of a search; --count is also the beam size.
        size = count if search is SearchKind.beam else max(count, search_options.default_count(search, count))
        strategy = search_options.make_search(search, size, 1.0, filters)
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
