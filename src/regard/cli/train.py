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
from regard.cli.train_options import StringList, TrainOptions, UsageError
from regard.config import codec
from regard.config.run import Run

if TYPE_CHECKING:
    from regard.train.auto.configure import AutoRun
    from regard.train.events import Finished, Listener

EXIT_CODES = {"finished": 0, "no improvement": 0, "stop requested": 75, "spike": 76}
RUN_FILE = "run.toml"  # store.model_folder has it too, and imports torch
DEFAULT_LENGTH = 32  # tokens of a usual sentence, where the corpus was not counted


def train(
    run: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="A run file, if you have one.")] = None,
    source: Annotated[StringList, typer.Option(metavar="FILE", help="The source side, one sentence a line.")] = None,
    target: Annotated[
        StringList, typer.Option(metavar="FILE", help="The target side: line n translates line n.")
    ] = None,
    text: Annotated[StringList, typer.Option(metavar="FILE", help="Running text: a file or a folder. Repeat.")] = None,
    data: Annotated[
        StringList, typer.Option(metavar="FILE", help="Any corpus: .tsv, .jsonl, .tmx, .conllu... Repeat.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where the run and its model go.")] = None,
    languages: Annotated[tuple[str, str] | None, typer.Option(help="The languages of both sides, e.g. en de.")] = None,
    validation: Annotated[StringList, typer.Option(metavar="FILE", help="Validation data as --data or --text.")] = None,
    validation_source: Annotated[
        StringList, typer.Option(metavar="FILE", help="The source side of validation.")
    ] = None,
    validation_target: Annotated[
        StringList, typer.Option(metavar="FILE", help="The target side of validation.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="The model's preset, instead of the one that suits.")] = None,
    settings: Annotated[
        StringList, typer.Option("--set", metavar="A.B=C", help="Change a value, e.g. train.clip=0.5. Repeat for more.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="About how long it may take.")] = None,
    updates: Annotated[int | None, typer.Option(help="Steps of the whole run, counted from its beginning.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another run of chance.")] = None,
    resume: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Go on with a run.")] = None,
    more: Annotated[int | None, typer.Option(help="With --resume: so many steps beyond the old total.")] = None,
    accept: Annotated[
        StringList, typer.Option(metavar="data|config", help="With --resume: go on though it changed.")
    ] = None,
    pause_at: Annotated[int | None, typer.Option(help="Save and rest at this step, to be resumed later.")] = None,
    track: Annotated[
        StringList, typer.Option(metavar="BOARD", help="Also tell tensorboard, wandb or mlflow. Repeat.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done and what it costs.")] = False,
) -> None:
    """Train a model from text: what is not said is chosen to suit the corpus, with reasons.

    Ctrl-C saves and stops; --resume goes on as if nothing had happened.
    """
    try:
        options = TrainOptions(
            run, source, target, text, data, out, languages, validation, validation_source, validation_target, preset,
            settings, minutes, updates, seed, resume, more, accept, pause_at, track, dry_run,
        )  # fmt: skip
        options.check()
        finished = _resume(options) if options.resume is not None else _start(options)
    except UsageError as error:
        Console(stderr=True).print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    if finished is not None:
        _print_next_steps(finished)
        raise typer.Exit(EXIT_CODES[finished.reason])


def _resume(options: TrainOptions) -> "Finished":
    folder = options.resume
    assert folder is not None  # noqa: S101 - `train` asked
    if not (folder / RUN_FILE).is_file():
        what = "There is no such folder." if not folder.exists() else f"This is no run: it has no {RUN_FILE}."
        raise RegardError(what, where=str(folder), fix="Give the folder that --out named; a new run starts with --out.")
    device = codec.RUN_FILES.load(folder / RUN_FILE).device
    if device.allocator == "tuned" and device.cpu_fast_path:
        tune_allocator()

    from regard.train.fit import resume  # torch: only when it is needed

    with _listeners(folder, (), options.track) as listeners:
        return resume(
            folder,
            changes=options.changes,
            updates=options.updates,
            more=options.more,
            accept=options.accept or (),
            listeners=listeners,
            pause_at=options.pause_at,
        )


def _start(options: TrainOptions) -> "Finished | None":
    changes = options.changes
    if options.out is not None:
        _check_output_folder(options.out)
    given_run = None if options.run is None else _read_run(options.run, changes)
    should_tune = (
        changes.get("device.allocator", "tuned") == "tuned" and changes.get("device.cpu_fast_path", True) is True
        if given_run is None
        else given_run.device.allocator == "tuned" and given_run.device.cpu_fast_path
    )
    if should_tune and not options.dry_run:
        tune_allocator()
    auto_run = _configure(options, changes) if given_run is None else None
    run = auto_run.run if auto_run is not None else given_run
    assert run is not None  # noqa: S101 - one of the two is there
    reasons = [*(auto_run.reasons if auto_run is not None else ()), _describe_cost(run, auto_run)]
    _print_lines(reasons)
    if options.dry_run:
        _print_lines([_describe_duration(run, auto_run)])
        typer.echo(f"\n{codec.RUN_FILES.dumps(run)}", nl=False)
        return None
    assert options.out is not None  # noqa: S101 - checked

    from regard.train.fit import fit  # torch: only when it is needed

    with _listeners(options.out, reasons, options.track) as listeners:
        file_infos = None if auto_run is None else auto_run.file_infos
        return fit(run, options.out, listeners=listeners, pause_at=options.pause_at, file_infos=file_infos)


def _configure(options: TrainOptions, changes: dict[str, Any]) -> "AutoRun":
    from regard.train.auto.configure import configure, measure_update  # only when it is needed

    with _status("looking at the corpus") as set_status:

        def time_update(run: Run, length: int) -> float:
            set_status("timing a few steps")
            return measure_update(run, length)

        return configure(
            options.sources,
            validation=options.validation_sources,
            preset=options.preset,
            minutes=options.minutes,
            changes=changes,
            timer=time_update,
        )


def _read_run(path: Path, changes: dict[str, Any]) -> Run:
    if path.is_dir():
        fix = (
            f"Say --resume {path}."
            if (path / RUN_FILE).is_file()
            else "Give a run file, or a corpus with --text or --data."
        )
        raise RegardError("This is a folder, not a run file.", where=str(path), fix=fix)
    try:
        return codec.RUN_FILES.load(path, changes)
    except ConfigError as error:
        if path.suffix == ".toml" or error.faults[0].path != "file":
            raise
        fix = f"To train on a corpus say --data {path}, or --text {path} for running text."
        raise RegardError("This is no run file: it is not TOML.", where=str(path), fix=fix) from None


def _check_output_folder(out: Path) -> None:
    """What cannot be written is said before a long reading, not after it."""
    for parent in out.absolute().parents:
        if parent.exists() and not parent.is_dir():
            raise RegardError("A folder cannot be inside a file.", where=str(parent), fix="Choose another --out.")
    if out.exists() and not out.is_dir():
        raise RegardError("--out is a file, and a model needs a folder.", where=str(out), fix="Choose another name.")
    if (out / RUN_FILE).is_file():
        fix = f"Go on with it: --resume {out}. Or choose another folder."
        raise RegardError("There is a run in this folder already.", where=str(out), fix=fix)
    if out.is_dir() and not all(map(is_leftover, out.iterdir())):
        raise RegardError("The folder is not empty.", where=str(out), fix="Choose a new folder.")


def _describe_cost(run: Run, auto_run: "AutoRun | None") -> str:
    """What a run will cost, before it runs."""
    from regard.models.cost import cost  # torch: only when it is needed

    length = _estimate_length(run, auto_run)
    batch_size = max(1, run.data.batch_tokens // length)
    source, target = (0, length) if run.model.family == "decoder_only" else (length, length)
    model_cost = cost(run.model, batch_size=batch_size, source=source, target=target)
    parameters, flops = model_cost.parameters.total(), model_cost.training.total() * run.accumulate * run.train.updates
    memory = 16 * parameters + model_cost.activations.total()  # weights, gradients and two moments, and the activations
    return (
        f"Cost: {parameters:,} parameters, at most {flops / 1e12:,.3g} TFLOP in all, and about "
        f"{memory / 1e9:.1f} GB of memory for weights and activations."
    )


def _describe_duration(run: Run, auto_run: "AutoRun | None") -> str:
    from regard.train.auto.configure import measure_update  # only when it is needed

    with _status("timing a few steps"):
        seconds = measure_update(run, _estimate_length(run, auto_run))
    total_time = format_duration(seconds * run.train.updates)
    return f"Time: about {total_time} on this machine, {seconds:.3g} s an update (measured with a few)."


@contextmanager
def _status(description: str) -> Iterator[Callable[[str], None]]:
    """A word on a terminal while nothing else is to be seen; what comes out changes it."""
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield lambda _: None
        return
    with console.status(f"{description}...") as status:
        yield lambda now: status.update(f"{now}...")


def _estimate_length(run: Run, auto_run: "AutoRun | None") -> int:
    if auto_run is not None:
        return min(auto_run.typical_length, run.data.max_length)
    return run.data.max_length if run.model.task == "continue" else min(DEFAULT_LENGTH, run.data.max_length)


@contextmanager
def _listeners(folder: Path, header: Sequence[str], tracker_names: StringList) -> "Iterator[list[Listener]]":
    """Whoever hears of the run: a live display on a terminal, lines elsewhere, boards, and always log.txt."""
    from regard.cli.event_lines import FileLog, LineLogger  # only when they are needed
    from regard.store.run_folder import RunFolder
    from regard.train.trackers import make_tracker

    trackers = [make_tracker(name, folder) for name in tracker_names or ()]

    file_log = FileLog(RunFolder(folder).log, header=header)
    console = Console()
    if sys.stdout.isatty() and not console.is_dumb_terminal:
        from regard.cli.display import Display

        with Display(console) as display:
            yield [display, file_log, *trackers]
    else:
        yield [LineLogger(typer.echo), file_log, *trackers]


def _print_lines(lines: Sequence[str]) -> None:
    console = Console()
    width = console.width if console.is_terminal else 1 << 20
    for line in lines:
        typer.echo(textwrap.fill(f"- {line}", width, subsequent_indent="  ", break_on_hyphens=False))


def _print_next_steps(finished: "Finished") -> None:
    folder = finished.folder
    if finished.reason == "stop requested":
        typer.echo(f"Go on with: regard train --resume {folder}")
    elif finished.reason == "spike":
        policy = codec.RUN_FILES.load(folder / RUN_FILE).train.spikes
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
        task = codec.MODEL_FILES.load(folder / "best" / "model.toml").task
        if task == "translate":
            typer.echo(f'Use it: regard translate {folder} "..."')
        elif task == "continue":
            typer.echo(f'Use it: regard generate {folder} "..."')
