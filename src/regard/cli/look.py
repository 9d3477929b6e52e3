"""`regard look`: look inside a model while it processes one text, image or audio clip."""

from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli import search_options
from regard.cli.options import SEARCH_PANEL, ModelArgument, TargetLanguage, option, output_file_option
from regard.cli.progress import show_stages

EXAMPLES = """
regard look my-model "Two dogs play in the snow."
regard look my-model "Two dogs play." --save dogs.html
regard look my-book "ROMEO:" --temperature 0.5 --max-new-tokens 20
regard look my-encoder "The ___ barks."
regard look my-vit photos/left/0.png
regard look my-captions photos/left/0.png
"""


def look(
    context: typer.Context,
    folder: ModelArgument,
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="A text to translate, continue, fill or label; or an image or audio file."),
    ],
    save: Annotated[
        Path | None,
        output_file_option("Write one HTML file instead of serving a page; it needs no network."),
    ] = None,
    port: Annotated[int, option("Port of the page on this machine; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, option("Open the page in a browser.", "--browser/--no-browser")] = True,
    beam: Annotated[
        int | None,
        option("Beam size; for a language model, search instead of sampling.", min=1, panel=SEARCH_PANEL),
    ] = None,
    n_best: Annotated[int, option("Hypotheses whose cross-attention is kept.", min=1, panel=SEARCH_PANEL)] = 1,
    max_new_tokens: Annotated[
        int | None, option("Maximum number of generated tokens.", min=1, panel=SEARCH_PANEL)
    ] = None,
    into: TargetLanguage = None,
    temperature: search_options.Temperature = 0.8,
    top_k: search_options.TopK = None,
    top_p: search_options.TopP = 0.95,
    min_p: search_options.MinP = None,
    seed: search_options.Seed = 0,
    ablation: Annotated[
        bool | None,
        option(
            "Switch off every head once.",
            "--ablation/--no-ablation",
            show_default="on if it takes only a few seconds",
        ),
    ] = None,
) -> None:
    """Look inside a model: attention, search, sampling and ablation of one text, image or audio clip.

    Opens a page in the browser that only this machine can read, and serves it until Ctrl-C. With --save, writes the
    page as one file instead.
    """
    sampling_options = [name for name in ("temperature", "top_k", "top_p", "min_p") if _is_given(context, name)]
    if beam is not None and sampling_options:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sampling_options)
        raise RegardError(f"--beam cannot be combined with {names}.", hint="Search or sample: leave one out.")
    from regard.decode.filters import Filters  # imports torch: only when needed
    from regard.look.build import look_into
    from regard.look.local import serve
    from regard.pipeline.image_captioner import ImageCaptioner
    from regard.pipeline.load import load
    from regard.pipeline.search import Beam, Sampling
    from regard.pipeline.transcriber import Transcriber
    from regard.pipeline.translator import Translator

    pipeline = load(folder)
    search: Beam | Sampling | None = None
    if beam is not None:
        search = Beam(beam)
    elif sampling_options or not isinstance(pipeline, Translator | Transcriber | ImageCaptioner):
        search = Sampling(filters=Filters(temperature, top_k, top_p, min_p))
    with show_stages():
        result = look_into(
            pipeline,
            text,
            name=folder.absolute().name,
            search=search,
            n_best=n_best,
            max_new_tokens=max_new_tokens,
            target_language=into,
            seed=seed,
            ablation=ablation,
        )
    if save is not None:
        size = result.save(save).stat().st_size
        typer.echo(f"{save} ({size / 1e6:.1f} MB)")
        return
    with serve(result, port) as server:
        typer.echo(f"{server.url}\nCtrl-C ends it.")
        if browser:
            server.open_browser()
        server.wait()


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
