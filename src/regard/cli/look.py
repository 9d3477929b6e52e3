"""`regard look`: look inside a model while it processes one text, image or audio clip, or at a training run."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli import search_options
from regard.cli.options import (
    SEARCH_PANEL,
    TargetLanguage,
    check_model,
    is_given,
    option,
    output_file_option,
)
from regard.cli.progress import show_stages

if TYPE_CHECKING:
    from regard.look.local import LivePage

EXAMPLES = """
regard look my-model "Two dogs play in the snow."
regard look my-model "Two dogs play." --save dogs.html
regard look my-model "Two dogs play." --against "Two cats play."
regard look my-book "ROMEO:" --temperature 0.5 --max-new-tokens 20
regard look my-encoder "The ___ barks."
regard look my-vit photos/left/0.png
regard look my-run
"""
ADVANCED = "n_best port top_k min_p"
COMPARISON_PANEL = "Comparison"


def look(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder or run folder.")],
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT",
            help="A text to translate, continue, fill or label; or an image or audio file. Without it: the training of "
            "a run folder.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        str | None, option("Another text, image or audio file.", metavar="TEXT", panel=COMPARISON_PANEL)
    ] = None,
    against_model: Annotated[
        Path | None,
        option("Another model.", "--against-model", metavar="MODEL", callback=check_model, panel=COMPARISON_PANEL),
    ] = None,
    against_run: Annotated[
        list[Path] | None,
        option("Without TEXT: another run. Repeatable.", "--against-run", metavar="RUN", panel=COMPARISON_PANEL),
    ] = None,
    save: Annotated[
        Path | None,
        output_file_option("Write one HTML file instead of serving a page; it needs no network."),
    ] = None,
    port: Annotated[int, option("Local port of the page; 0 picks a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, option("Open the page in a browser.", "--browser/--no-browser")] = True,
    beam: Annotated[
        int | None,
        option("Beam size; for a language model, search instead of sampling.", min=1, panel=SEARCH_PANEL),
    ] = None,
    n_best: Annotated[int, option("Number of hypotheses to keep cross-attention for.", min=1, panel=SEARCH_PANEL)] = 1,
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
            "Ablate every head, one at a time.",
            "--ablation/--no-ablation",
            show_default="on if it takes only a few seconds",
        ),
    ] = None,
) -> None:
    """Look inside a model: attention, search, sampling and ablation of one text, image or audio clip.

    Without TEXT, shows the curves of a run, and its film if it was trained with --film; also while it trains.

    With --against or --against-model, the page also compares two inputs, two models or both.

    Serves a page on localhost and opens it in the browser, until Ctrl-C. With --save, writes the page to one file
    instead.
    """
    if text is None:
        if against is not None or against_model is not None:
            hint = "Add the text, or compare runs with --against-run."
            raise RegardError("--against and --against-model need a text.", hint=hint)
        _look_at_runs([folder, *(against_run or ())], save, port, browser)
        return
    if against_run:
        raise RegardError("--against-run cannot be combined with a text.", hint="Leave out the text, or the option.")
    check_model(folder)
    sampling_options = [name for name in ("temperature", "top_k", "top_p", "min_p") if is_given(context, name)]
    if beam is not None and sampling_options:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sampling_options)
        raise RegardError(f"--beam cannot be combined with {names}.", hint="Search or sample: leave one out.")
    from regard.blame.run import PageBlame
    from regard.decode.filters import Filters  # imports torch: only when needed
    from regard.look.build import look_into
    from regard.look.session import LookSession
    from regard.tasks.capabilities import Translates
    from regard.tasks.load import load
    from regard.tasks.search import Beam, Sampling

    pipeline, second = load(folder), None if against_model is None else load(against_model)
    search: Beam | Sampling | None = None
    if beam is not None:
        search = Beam(beam)
    elif sampling_options:
        search = Sampling(filters=Filters(temperature, top_k, top_p, min_p))
    with show_stages():
        look_at = partial(
            look_into,
            search=search,
            n_best=n_best,
            max_new_tokens=max_new_tokens,
            target_language=into,
            seed=seed,
            ablation=ablation,
        )
        result = look_at(pipeline, text, name=folder.absolute().name)
        if against is not None or second is not None:
            name = (against_model or folder).absolute().name
            result = result.against(look_at(second or pipeline, text if against is None else against, name=name))
    if save is not None:
        _print_size(result.save(save))
        return
    is_run = isinstance(pipeline, Translates) and PageBlame.is_possible(folder)
    explain_word = partial(PageBlame(folder).answer, target_language=into) if is_run else None
    _serve(LookSession(result, explain_word), port, browser)


def _look_at_runs(folders: list[Path], save: Path | None, port: int, browser: bool) -> None:
    from regard.look.film import RunPage

    page = RunPage(folders)
    if save is not None:
        _print_size(page.save(save))
    else:
        _serve(page, port, browser)


def _print_size(path: Path) -> None:
    typer.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


def _serve(page: "LivePage", port: int, browser: bool) -> None:
    from regard.look.local import serve

    with serve(page, port) as server:
        typer.echo(f"{server.url}\nPress Ctrl-C to stop.")
        if browser:
            server.open_browser()
        server.wait()
