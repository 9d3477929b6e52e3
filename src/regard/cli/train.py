"""`regard train`: train a model from text, or resume a run.

Exit codes: 0 finished, 1 error, 2 options that cannot be combined, 75 stopped on request after saving, 76 stopped by a
loss spike, 130 after a second Ctrl-C.
"""

import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251

from regard.base.errors import ConfigError, RegardError
from regard.base.files import is_leftover
from regard.base.formatting import format_duration
from regard.cli.allocator import tune_allocator
from regard.cli.options import StringList, takes_options
from regard.cli.train_options import TrainOptions, UsageError
from regard.config import codec
from regard.config.run import Run

if TYPE_CHECKING:
    from regard.train.auto.configure import AutoRun
    from regard.train.events import Finished, Listener

EXIT_CODES = {"finished": 0, "no improvement": 0, "stop requested": 75, "spike": 76}
RUN_FILE = "run.toml"  # also in store.model_folder, which imports torch
DEFAULT_LENGTH = 32  # tokens of a typical sentence, if the corpus was not analysed


@takes_options(TrainOptions)
def train(options: TrainOptions) -> None:
    """Train a model from text. Settings that you do not give are chosen from the corpus, each with its reason.

    Ctrl-C saves a checkpoint and stops; --resume continues the run exactly.
    """
    try:
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
    assert folder is not None  # noqa: S101 - `train` checked it
    if not (folder / RUN_FILE).is_file():
        what = f"This is not a run folder: it has no {RUN_FILE}." if folder.exists() else "There is no such folder."
        raise RegardError(what, where=str(folder), fix="Give the --out folder of a run; a new run starts with --out.")
    device = codec.RUN_FILES.load(folder / RUN_FILE).device
    header = tune_allocator(is_enabled=device.allocator == "tuned" and device.cpu_fast_path)
    _print_lines(header)

    from regard.train.fit import resume  # imports torch: only when needed

    with _listeners(folder, header, options.track) as listeners:
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
    file_run = None if options.run is None else _read_run(options.run, changes)
    should_tune = (
        changes.get("device.allocator", "tuned") == "tuned" and changes.get("device.cpu_fast_path", True) is True
        if file_run is None
        else file_run.device.allocator == "tuned" and file_run.device.cpu_fast_path
    )
    notes = () if options.dry_run else tune_allocator(is_enabled=should_tune)
    auto_run = _configure(options, changes) if file_run is None else None
    run = auto_run.run if auto_run is not None else file_run
    assert run is not None  # noqa: S101 - one of the two exists
    reasons = [*(auto_run.reasons if auto_run is not None else ()), _describe_cost(run, auto_run), *notes]
    _print_lines(reasons)
    if options.dry_run:
        _print_lines([_describe_duration(run, auto_run)])
        typer.echo(f"\n{codec.RUN_FILES.dumps(run)}", nl=False)
        return None
    assert options.out is not None  # noqa: S101 - `check` requires it

    from regard.train.fit import fit  # imports torch: only when needed

    with _listeners(options.out, reasons, options.track) as listeners:
        file_infos = None if auto_run is None else auto_run.file_infos
        return fit(run, options.out, listeners=listeners, pause_at=options.pause_at, file_infos=file_infos)


def _configure(options: TrainOptions, changes: dict[str, Any]) -> "AutoRun":
    from regard.train.auto.configure import configure, measure_update  # only when needed

    with _status("analysing the corpus") as set_status:

        def time_update(run: Run, length: int) -> float:
            set_status("timing a few updates")
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
            f"To continue this run: --resume {path}."
            if (path / RUN_FILE).is_file()
            else "Give a run file, or a corpus with --text or --data."
        )
        raise RegardError("This is a folder, not a run file.", where=str(path), fix=fix)
    try:
        return codec.RUN_FILES.load(path, changes)
    except ConfigError as error:
        if path.suffix == ".toml" or error.faults[0].path != "file":
            raise
        fix = f"To train on this file as a corpus: --data {path}, or --text {path} for a language model."
        raise RegardError("This is not a run file: it is not TOML.", where=str(path), fix=fix) from None


def _check_output_folder(out: Path) -> None:
    """Raise an error for a folder that cannot be used, before the corpus is read."""
    for parent in out.absolute().parents:
        if parent.exists() and not parent.is_dir():
            raise RegardError("--out is inside a file.", where=str(parent), fix="Choose another --out.")
    if out.exists() and not out.is_dir():
        raise RegardError("--out is a file; a run needs a folder.", where=str(out), fix="Choose another name.")
    if (out / RUN_FILE).is_file():
        fix = f"Continue it with --resume {out}, or choose another folder."
        raise RegardError("This folder already contains a run.", where=str(out), fix=fix)
    if out.is_dir() and not all(map(is_leftover, out.iterdir())):
        raise RegardError("The folder is not empty.", where=str(out), fix="Choose a new folder.")


def _describe_cost(run: Run, auto_run: "AutoRun | None") -> str:
    """Estimate parameters, arithmetic and memory of the run."""
    from regard.models.cost import cost  # imports torch: only when needed

    length = _estimate_length(run, auto_run)
    batch_size = max(1, run.data.batch_tokens // length)
    source, target = (0, length) if run.model.family == "decoder_only" else (length, length)
    model_cost = cost(run.model, batch_size=batch_size, source=source, target=target)
    parameters, flops = model_cost.parameters.total(), model_cost.training.total() * run.accumulate * run.train.updates
    memory = 16 * parameters + model_cost.activations.total()  # weights, gradients, two moments; activations
    return (
        f"Cost: {parameters:,} parameters, at most {flops / 1e12:,.3g} TFLOP in all, about "
        f"{memory / 1e9:.1f} GB of memory for weights and activations."
    )


def _describe_duration(run: Run, auto_run: "AutoRun | None") -> str:
    from regard.train.auto.configure import measure_update  # only when needed

    with _status("timing a few updates"):
        seconds = measure_update(run, _estimate_length(run, auto_run))
    total_time = format_duration(seconds * run.train.updates)
    return f"Time: about {total_time} on this machine ({seconds:.3g} s per update, measured over a few updates)."


@contextmanager
def _status(description: str) -> Iterator[Callable[[str], None]]:
    """Show a status line on a terminal; yields a function that changes it."""
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield lambda _: None
        return
    with console.status(f"{description}...") as status:
        yield lambda new_description: status.update(f"{new_description}...")


def _estimate_length(run: Run, auto_run: "AutoRun | None") -> int:
    if auto_run is not None:
        return min(auto_run.typical_length, run.data.max_length)
    return run.data.max_length if run.model.task == "continue" else min(DEFAULT_LENGTH, run.data.max_length)


@contextmanager
def _listeners(folder: Path, header: Sequence[str], tracker_names: StringList) -> "Iterator[list[Listener]]":
    """Create the listeners of the run: log.txt, the trackers, and a live display (a terminal) or plain lines (else)."""
    from regard.cli.event_lines import FileLog, LineLogger  # only when needed
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
        typer.echo(f"Continue with: regard train --resume {folder}")
    elif finished.reason == "spike":
        policy = codec.RUN_FILES.load(folder / RUN_FILE).train.spikes
        change, action = "kind=skip", "skip the update that spiked"
        if policy.kind != "stop":
            limit = policy.max_spikes + 10
            change, action = f"max_spikes={limit}", f"raise the limit from {policy.max_spikes} to {limit} spikes"
        typer.echo(f"See {folder / 'log.txt'}. To {action} and continue:")
        typer.echo(f"  regard train --resume {folder} --set train.spikes.{change} --accept config")
    else:
        typer.echo(f"Best model: {folder / 'best'}")
        task = codec.MODEL_FILES.load(folder / "best" / "model.toml").task
        if task == "translate":
            typer.echo(f'Use it: regard translate {folder} "..."')
        elif task == "continue":
            typer.echo(f'Use it: regard generate {folder} "..."')
