"""`regard lectures`: the lectures as pages, worked numbers in the terminal, named bugs and checked homework."""

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251

from regard.cli.help import HelpCommand, HelpGroup
from regard.cli.options import option
from regard.cli.progress import show_stages

EXAMPLES = """
regard lectures
regard lectures --save site
regard lectures show attention
"""
app = typer.Typer(
    cls=HelpGroup,
    help="Open five lectures on Transformers as pages that compute, offline.",
    epilog=EXAMPLES,
    invoke_without_command=True,
)


@app.callback()
def _open(
    context: typer.Context,
    save: Annotated[
        Path | None, option("Write the site into this folder instead of opening it.", metavar="FOLDER")
    ] = None,
    browser: Annotated[bool, option("Open the site in a browser.", "--browser/--no-browser")] = True,
) -> None:
    """Open the lectures as an offline site: stations to predict, see, change and judge."""
    if context.invoked_subcommand is not None:
        return
    from regard.lectures.site import load_lectures, write_site

    folder = Path(tempfile.mkdtemp(prefix="regard-lectures-")) if save is None else save
    with show_stages():
        paths = write_site(folder, load_lectures())
    size = sum(path.stat().st_size for path in paths)
    typer.echo(f"{folder / 'index.html'} ({len(paths)} files, {size / 1e6:.1f} MB)")
    if save is None and browser:
        webbrowser.open((folder / "index.html").absolute().as_uri())


@app.command(cls=HelpCommand, epilog="regard lectures show attention")
def show(
    subject: Annotated[
        str | None, typer.Argument(metavar="SUBJECT", help="Name of the example.", show_default=False)
    ] = None,
) -> None:
    """Print a worked example; without SUBJECT, list them."""
    from regard.lectures.subjects import SUBJECTS
    from regard.lectures.subjects import show as show_subject

    if subject is None:
        width = max(map(len, SUBJECTS))
        for name, function in SUBJECTS.items():
            typer.echo(f"{name:{width}}  {(function.__doc__ or '').splitlines()[0]}")
        return
    for line in show_subject(subject):
        typer.echo(line)


@app.command(cls=HelpCommand, epilog='regard lectures sentence my-model "The cat sat on the mat."')
def sentence(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder or run folder.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The sentence.")],
    attention: Annotated[
        str | None, option("Name of the attention, e.g. decoder.1.cross. Default: the first.", metavar="NAME")
    ] = None,
    head: Annotated[int, option("Index of the head.", min=0)] = 0,
) -> None:
    """Print scores, weights and outputs of one head while a model reads a sentence."""
    from regard.lectures.sentence import show_sentence

    for line in show_sentence(model, text, attention, head):
        typer.echo(line)


@app.command(cls=HelpCommand, epilog="regard lectures summary book.txt --sentences 5")
def summary(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Text or Markdown file.")],
    sentences: Annotated[int, option("Number of sentences.", min=1)] = 3,
    model: Annotated[
        Path | None, option("Encoder whose sentence vectors replace word counts.", metavar="MODEL")
    ] = None,
) -> None:
    """Print the sentences of a text that resemble the others most."""
    from regard.lectures.summary import summarize

    for line in summarize(file, sentences, model):
        typer.echo(f"- {line}")


@app.command(cls=HelpCommand, epilog="regard lectures broken no-causal-mask\nregard lectures broken 3")
def broken(
    bug: Annotated[
        str | None, typer.Argument(metavar="BUG", help="Name or number of the bug.", show_default=False)
    ] = None,
) -> None:
    """Compare a model that has one bug with a correct one; without BUG, list the bugs.

    A number hides the bug's name, so that you can find it.
    """
    from regard.lectures.broken import BUGS, show_broken

    if bug is None:
        width = max(map(len, BUGS))
        for number, (name, fault) in enumerate(BUGS.items(), start=1):
            typer.echo(f"{number:2}  {name:{width}}  {fault.title}")
        return
    for line in show_broken(bug, with_answer=not bug.isdecimal()):
        typer.echo(line)


@app.command(cls=HelpCommand, epilog="regard lectures check my_attention.py")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE.PY", help="Python file with your modules. It is executed.")],
) -> None:
    """Compare your own Transformer modules with Regard's, in values and gradients.

    The file defines any of the lecture's names: attention, MultiHeadedAttention, PositionwiseFeedForward, LayerNorm,
    PositionalEncoding, Embeddings, SublayerConnection, subsequent_mask.
    """
    from regard.lectures.homework import check_file

    findings = list(check_file(file))
    for finding in findings:
        typer.echo(f"{finding.part}: {finding.difference or 'equal in values and gradients'}")
    if any(finding.difference for finding in findings):
        raise typer.Exit(1)


@app.command(cls=HelpCommand, epilog="regard lectures claims\nregard lectures claims --lecture 3")
def claims(
    lecture: Annotated[int | None, option("Only this lecture, 1 to 5.", min=1, max=5, metavar="N")] = None,
) -> None:
    """Print every claim that a station checks: the experiment, its verdict, and the number that decides."""
    from regard.lectures.load import NUMBERS, load_lecture

    for number in NUMBERS if lecture is None else [lecture]:
        one = load_lecture(number)  # a lecture takes some seconds: print it before the next one
        typer.echo(f"\nLecture {number}: {one.title}")
        for place, station in enumerate(one.stations, start=1):
            typer.echo(f"\n{place:2}. {station.title}")
            typer.echo(f"    Claim: {station.claim}")
            typer.echo(f"    Experiment: {station.experiment}")
            typer.echo(f"    {station.verdict.judgment.capitalize()}: {station.verdict.text}")


@app.command(cls=HelpCommand, epilog="regard lectures world it --out it")
def world(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the world: it, bank, orders, copy or dia.")],
    out: Annotated[Path, option("New folder for the files.", metavar="FOLDER")],
    seed: Annotated[int, option("Random seed of the sentences.", min=0)] = 1,
) -> None:
    """Write a toy world: a generated corpus in which one known mechanism solves the task.

    Writes training and validation data and a run file, and the trained model if it is bundled. Prints the training
    command.
    """
    from regard.lectures.worlds import write_world

    typer.echo(write_world(name, out, seed))
