"""`regard train`: from text to a model's folder, and on again after any stop.

Ends with code 0 when the run is finished, 1 on an error, 2 when options do not fit together, 75 when it was asked to
stop and saved, 76 when a spike stopped it, and 130 after a second Ctrl-C.
"""

import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251

from regard.base.errors import ConfigError, RegardError
from regard.base.files import is_leftover
from regard.base.times import format_duration
from regard.cli.allocator import tune_allocator
from regard.cli.order import Order, Texts, UsageError
from regard.config import codec
from regard.config.run import Run

if TYPE_CHECKING:
    from regard.train.choose import AutoRun
    from regard.train.events import Finished, Listener

CODES = {"finished": 0, "no longer better": 0, "asked to stop": 75, "spike": 76}
RUN = "run.toml"  # store.model_folder has it too, and imports torch
LENGTH = 32  # tokens of a usual sentence, where the corpus was not counted


def train(
    run: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="A run file, if you have one.")] = None,
    source: Annotated[Texts, typer.Option(metavar="FILE", help="The source side, one sentence a line.")] = None,
    target: Annotated[Texts, typer.Option(metavar="FILE", help="The target side: line n translates line n.")] = None,
    text: Annotated[Texts, typer.Option(metavar="FILE", help="Running text: a file or a folder. Repeat.")] = None,
    data: Annotated[
        Texts, typer.Option(metavar="FILE", help="Any corpus: .tsv, .jsonl, .tmx, .conllu... Repeat.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where the run and its model go.")] = None,
    languages: Annotated[tuple[str, str] | None, typer.Option(help="The languages of both sides, e.g. en de.")] = None,
    validation: Annotated[Texts, typer.Option(metavar="FILE", help="Validation data as --data or --text.")] = None,
    validation_source: Annotated[Texts, typer.Option(metavar="FILE", help="The source side of validation.")] = None,
    validation_target: Annotated[Texts, typer.Option(metavar="FILE", help="The target side of validation.")] = None,
    preset: Annotated[str | None, typer.Option(help="The model's preset, instead of the one that suits.")] = None,
    settings: Annotated[
        Texts, typer.Option("--set", metavar="A.B=C", help="Change a value, e.g. train.clip=0.5. Repeat for more.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="About how long it may take.")] = None,
    updates: Annotated[int | None, typer.Option(help="Steps of the whole run, counted from its beginning.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another run of chance.")] = None,
    resume: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Go on with a run.")] = None,
    more: Annotated[int | None, typer.Option(help="With --resume: so many steps beyond the old total.")] = None,
    accept: Annotated[
        Texts, typer.Option(metavar="data|config", help="With --resume: go on though it changed.")
    ] = None,
    pause_at: Annotated[int | None, typer.Option(help="Save and rest at this step, to be resumed later.")] = None,
    track: Annotated[
        Texts, typer.Option(metavar="BOARD", help="Also tell tensorboard, wandb or mlflow. Repeat.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done and what it costs.")] = False,
) -> None:
    """Train a model from text: what is not said is chosen to suit the corpus, with reasons.

    Ctrl-C saves and stops; --resume goes on as if nothing had happened.
    """
    try:
        order = Order(
            run, source, target, text, data, out, languages, validation, validation_source, validation_target, preset,
            settings, minutes, updates, seed, resume, more, accept, pause_at, track, dry_run,
        )  # fmt: skip
        order.check()
        finished = _resume(order) if order.resume is not None else _start(order)
    except UsageError as error:
        Console(stderr=True).print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    if finished is not None:
        _say_goodbye(finished)
        raise typer.Exit(CODES[finished.reason])


def _resume(order: Order) -> "Finished":
    folder = order.resume
    assert folder is not None  # noqa: S101 - `train` asked
    if not (folder / RUN).is_file():
        what = "There is no such folder." if not folder.exists() else f"This is no run: it has no {RUN}."
        raise RegardError(what, where=str(folder), fix="Give the folder that --out named; a new run starts with --out.")
    if codec.RUN_FILES().load(folder / RUN).device.allocator == "tuned":
        tune_allocator()

    from regard.train.fit import resume  # torch: only when it is needed

    with _watched(folder, (), order.track) as listeners:
        return resume(
            folder,
            changes=order.changes,
            updates=order.updates,
            more=order.more,
            accept=order.accept or (),
            listeners=listeners,
            pause_at=order.pause_at,
        )


def _start(order: Order) -> "Finished | None":
    changes = order.changes
    if order.out is not None:
        _refuse_folder(order.out)
    given = None if order.run is None else _read_run(order.run, changes)
    tuned = changes.get("device.allocator", "tuned") == "tuned" if given is None else given.device.allocator == "tuned"
    if tuned and not order.dry_run:
        tune_allocator()
    choice = _choose(order, changes) if given is None else None
    run = choice.run if choice is not None else given
    assert run is not None  # noqa: S101 - one of the two is there
    told = [*(choice.reasons if choice is not None else ()), _cost(run, choice)]
    _show(told)
    if order.dry_run:
        _show([_duration(run, choice)])
        typer.echo(f"\n{codec.RUN_FILES().dumps(run)}", nl=False)
        return None
    assert order.out is not None  # noqa: S101 - checked

    from regard.train.fit import fit  # torch: only when it is needed

    with _watched(order.out, told, order.track) as listeners:
        return fit(run, order.out, listeners=listeners, pause_at=order.pause_at)


def _choose(order: Order, changes: dict[str, Any]) -> "AutoRun":
    from regard.train.choose import configure, measure_update  # only when it is needed

    with _busy("looking at the corpus") as say:

        def paced(run: Run, length: int) -> float:
            say("timing a few steps")
            return measure_update(run, length)

        return configure(
            order.sources,
            validation=order.validation_sources,
            preset=order.preset,
            minutes=order.minutes,
            changes=changes,
            timer=paced,
        )


def _read_run(path: Path, changes: dict[str, Any]) -> Run:
    if path.is_dir():
        fix = (
            f"Say --resume {path}." if (path / RUN).is_file() else "Give a run file, or a corpus with --text or --data."
        )
        raise RegardError("This is a folder, not a run file.", where=str(path), fix=fix)
    try:
        return codec.RUN_FILES().load(path, changes)
    except ConfigError as error:
        if path.suffix == ".toml" or error.faults[0].path != "file":
            raise
        fix = f"To train on a corpus say --data {path}, or --text {path} for running text."
        raise RegardError("This is no run file: it is not TOML.", where=str(path), fix=fix) from None


def _refuse_folder(out: Path) -> None:
    """What cannot be written is said before a long reading, not after it."""
    for parent in out.absolute().parents:
        if parent.exists() and not parent.is_dir():
            raise RegardError("A folder cannot be inside a file.", where=str(parent), fix="Choose another --out.")
    if out.exists() and not out.is_dir():
        raise RegardError("--out is a file, and a model needs a folder.", where=str(out), fix="Choose another name.")
    if (out / RUN).is_file():
        fix = f"Go on with it: --resume {out}. Or choose another folder."
        raise RegardError("There is a run in this folder already.", where=str(out), fix=fix)
    if out.is_dir() and not all(map(is_leftover, out.iterdir())):
        raise RegardError("The folder is not empty.", where=str(out), fix="Choose a new folder.")


def _cost(run: Run, choice: "AutoRun | None") -> str:
    """What a run will cost, before it runs."""
    from regard.models.cost import cost  # torch: only when it is needed

    length = _length(run, choice)
    rows = max(1, run.data.batch_tokens // length)
    source, target = (0, length) if run.model.family == "decoder_only" else (length, length)
    known = cost(run.model, batch_size=rows, source=source, target=target)
    parameters, flops = known.parameters.total(), known.training.total() * run.accumulate * run.train.updates
    memory = 16 * parameters + known.activations.total()  # weights, gradients and two moments, and the activations
    return (
        f"Cost: {parameters:,} parameters, at most {flops / 1e12:,.3g} TFLOP in all, and about "
        f"{memory / 1e9:.1f} GB of memory for weights and activations."
    )


def _duration(run: Run, choice: "AutoRun | None") -> str:
    from regard.train.choose import measure_update  # only when it is needed

    with _busy("timing a few steps"):
        seconds = measure_update(run, _length(run, choice))
    whole = format_duration(seconds * run.train.updates)
    return f"Time: about {whole} on this machine, {seconds:.3g} s an update (measured with a few)."


@contextmanager
def _busy(doing: str) -> Iterator[Callable[[str], None]]:
    """A word on a terminal while nothing else is to be seen; what comes out changes it."""
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield lambda _: None
        return
    with console.status(f"{doing}...") as shown:
        yield lambda now: shown.update(f"{now}...")


def _length(run: Run, choice: "AutoRun | None") -> int:
    if choice is not None:
        return min(choice.typical_length, run.data.max_length)
    return run.data.max_length if run.model.task == "continue" else min(LENGTH, run.data.max_length)


@contextmanager
def _watched(folder: Path, told: Sequence[str], boards: Texts) -> "Iterator[list[Listener]]":
    """Whoever hears of the run: a live display on a terminal, lines elsewhere, boards, and always log.txt."""
    from regard.cli.lines import Lines, Log  # only when they are needed
    from regard.store.run_folder import RunFolder
    from regard.train.trackers import make_tracker

    trackers = [make_tracker(board, folder) for board in boards or ()]

    log = Log(RunFolder(folder).log, before=told)
    console = Console()
    if sys.stdout.isatty() and not console.is_dumb_terminal:
        from regard.cli.display import Display

        with Display(console) as display:
            yield [display, log, *trackers]
    else:
        yield [Lines(typer.echo), log, *trackers]


def _show(lines: Sequence[str]) -> None:
    console = Console()
    width = console.width if console.is_terminal else 1 << 20
    for line in lines:
        typer.echo(textwrap.fill(f"- {line}", width, subsequent_indent="  ", break_on_hyphens=False))


def _say_goodbye(finished: "Finished") -> None:
    folder = finished.folder
    if finished.reason == "asked to stop":
        typer.echo(f"Go on with: regard train --resume {folder}")
    elif finished.reason == "spike":
        policy = codec.RUN_FILES().load(folder / RUN).train.spikes
        change, what = "kind=skip", "without the update that spiked"
        if policy.kind != "stop":
            change, what = (
                f"most={policy.max_spikes + 10}",
                f"for 10 more spikes than the {policy.max_spikes} that a run survives",
            )
        typer.echo(f"Look at {folder / 'log.txt'}, then go on {what}:")
        typer.echo(f"  regard train --resume {folder} --set train.spikes.{change} --accept config")
    else:
        typer.echo(f"The model is in {folder / 'best'}.")
        task = codec.load(folder / "best" / "model.toml").task
        if task == "translate":
            typer.echo(f'Use it: regard translate {folder} "..."')
        elif task == "continue":
            typer.echo(f'Use it: regard generate {folder} "..."')
