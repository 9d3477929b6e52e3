"""`regard train`: train a model from text, or resume a run. `regard.training.api` does the work; this file displays it.

Exit codes: 0 finished, 1 error, 2 options that cannot be combined, 75 stopped on request after saving, 76 stopped by a
loss spike, 130 after a second Ctrl-C. With --ranks the launcher ends with the code of the ranks.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251

from regard.cli.command_start import command_start
from regard.cli.options import takes_options
from regard.cli.train_export import check_exports, export_run
from regard.cli.train_options import PARAMETER_TYPES, TRAIN_PARAMETERS, TrainCommandOptions
from regard.config import codec
from regard.plan.outcome import read_outcome_listener
from regard.training.api import preview_run, start
from regard.training.distributed.rank import Worker
from regard.training.options import RUN_FILE, FinishedError, UsageError

if TYPE_CHECKING:
    from regard.training.events import Event, Finished, Listener

EXIT_CODES = {"finished": 0, "no improvement": 0, "stop requested": 75, "spike": 76}
EXAMPLES = """
regard train --source train.en --target train.de --out my-model
regard train --source train.en --target train.de --out my-model --minutes 10
regard train --text book.txt --out my-book
regard train --data reviews.tsv --out my-classifier
regard train --images photos --out my-vit
regard train --audio recordings --out my-audio
regard train --resume my-model
regard train --source train.en --target train.de --dry-run
"""
ADVANCED = """columns languages validation_source validation_target teacher seed track export force more ranks
    hosts rendezvous"""
USES = {  # by task: the command that uses the model, a text or options for it, and the options of `regard evaluate`
    "translate": ("translate", "...", "--source TEST --reference TEST"),
    "causal_lm": ("generate", "...", "--text TEST"),
    "masked_lm": ("predict", "... ___ ...", "--text TEST"),
    "classify": ("predict", "...", "--data TEST"),
    "tag": ("predict", "...", "--data TEST"),
    "embed": ("embed", "...", "--data TEST"),
    "images": ("predict", "IMAGE", "--images TEST"),
    "masked_patches": ("tune", "--images LABELED --out TUNED", None),
    "pixels": ("generate", "--out IMAGES", "--images TEST"),
    "audio": ("predict", "CLIP.wav", "--audio TEST"),
    "transcribe": ("predict", "CLIP.wav", "--audio TEST"),
    "caption": ("predict", "IMAGE.png", "--images TEST"),
}


@takes_options(TrainCommandOptions, TRAIN_PARAMETERS, PARAMETER_TYPES)
def train(options: TrainCommandOptions) -> None:
    """Train a model from text, images or audio clips. Settings that are not given are chosen, each with a reason.

    Ctrl-C saves a checkpoint and stops; --resume continues the run exactly.
    """
    run_training(options)


def run_training(options: TrainCommandOptions) -> None:
    """Run a command that trains: here, or as one of several ranks; it ends with the exit code of the run."""
    started = command_start()
    worker = Worker.from_environment()
    if worker is not None:  # a launcher has started this process as one of several ranks
        if worker.folder is None and (options.dry_run or options.is_distributed):
            message = (
                f"RANK and WORLD_SIZE say that a launcher started this process as one of {worker.world_size} ranks."
            )
            _print_line(f"{message} Leave out --dry-run, --ranks and --hosts, or unset the variables.", style="red")
            raise typer.Exit(2)
        raise typer.Exit(worker.run(lambda: _train_rank(options, worker, started)))
    try:
        options = options.place_files()
        options.check()
        options.check_corpus()
        check_exports(options)
        if options.dry_run:
            _print_plan(options)
            return
        code = _launch(options) if options.is_distributed else _train(options, started)
    except UsageError as error:
        _print_line(str(error), style="red")
        raise typer.Exit(2) from None
    raise typer.Exit(code)


def _train(options: TrainCommandOptions, started: float) -> int:
    outcome = read_outcome_listener(options.run)
    with show_events(explain=options.explain) as listener:
        listeners: list[Listener] = [listener, *([] if outcome is None else [outcome])]
        finished = start(options, listeners, started=started)
    if outcome is not None and outcome.summary:
        typer.echo(outcome.summary)
        with (finished.folder / "log.txt").open("a", encoding="utf-8") as log:
            log.write(f"{outcome.summary}\n")
    _print_next_steps(finished)
    if EXIT_CODES[finished.reason] == 0:
        export_run(finished.folder, options)
    return EXIT_CODES[finished.reason]


def _train_rank(options: TrainCommandOptions, worker: Worker, started: float) -> int:
    """Train as one of several ranks. Only rank 0 displays; a further attempt resumes what an earlier one has done."""
    options = options.place_files()
    if worker.attempt:
        options = options.for_next_attempt()
    try:
        if worker.rank == 0:
            return _train(options, started)
        return EXIT_CODES[start(options, started=started).reason]
    except FinishedError:
        if worker.attempt == 0:
            raise
        return EXIT_CODES["finished"]  # the attempt before finished the run, and failed after that


def _launch(options: TrainCommandOptions) -> int:
    """Start the ranks and wait for their end; this process trains nothing."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # before torch is imported: gloo warns about host names
    from regard.training.distributed.launcher import launch  # these import torch.distributed: only when needed
    from regard.training.distributed.rendezvous import Hosts, check_ranks

    check_ranks(options.ranks or 1, options.device_name)
    hosts = None
    if options.hosts is not None and options.rendezvous is not None:
        hosts = Hosts.parse(options.hosts, options.rendezvous)
    arguments = sys.argv[1:]
    if options.resume is not None and options.more is not None:  # a total, which the next attempt can repeat
        from regard.training.run import add_steps

        total = add_steps(options.resume, options.more)
        arguments = [
            *_remove_option(arguments, options.format_option("more")),
            options.format_option("steps"),
            str(total),
        ]
    arguments = ["-m", "regard", *arguments]
    return launch(arguments, options.ranks or 1, hosts=hosts, report=lambda line: _print_line(line, style="yellow"))


def _remove_option(arguments: list[str], name: str) -> list[str]:
    """Remove an option and its value.

    >>> _remove_option(["train", "--resume", "a", "--more", "5"], "--more")
    ['train', '--resume', 'a']
    >>> _remove_option(["train", "--more=5", "--resume", "a"], "--more")
    ['train', '--resume', 'a']
    """
    return [
        argument
        for previous, argument in zip(["", *arguments], arguments, strict=False)
        if name not in (previous, argument) and not argument.startswith(f"{name}=")
    ]


def _print_line(text: str, *, style: str) -> None:
    Console(stderr=True).print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _print_plan(options: TrainCommandOptions) -> None:
    with show_events(explain=True) as listener:
        plan = preview_run(options, [listener])
        duration = plan.measure_duration([listener])
    typer.echo(f"- {duration}")
    if _is_terminal():
        typer.echo("- All settings: the same command with `| less` prints them as a run file.")
    else:
        typer.echo(f"\n{codec.RUN_FILES.dumps(plan.run)}", nl=False)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


@contextmanager
def show_events(*, explain: bool = False) -> "Iterator[Listener]":
    """Show events: a live display on a terminal, plain lines elsewhere; details only with `explain`."""
    from regard.training.event_lines import LineLogger, remove_details  # only when needed

    console = Console()
    if _is_terminal() and not console.is_dumb_terminal:
        from regard.cli.display import Display  # only when needed

        show: AbstractContextManager[Listener] = Display(console)
    else:
        show = nullcontext(LineLogger(typer.echo))
    with show as listener:

        def show_brief(event: "Event") -> None:
            if (brief := remove_details(event)) is not None:
                listener(brief)

        yield listener if explain else show_brief


def _print_next_steps(finished: "Finished") -> None:
    folder = finished.folder
    if finished.reason == "stop requested":
        typer.echo(f"Continue with: regard train --resume {folder}")
    elif finished.reason == "spike":
        policy = codec.RUN_FILES.load(folder / RUN_FILE).train.spikes
        change, action = "kind=skip", "skip the step that spiked"
        if policy.kind != "stop":
            limit = policy.max_spikes + 10
            change, action = f"max_spikes={limit}", f"raise the limit from {policy.max_spikes} to {limit} spikes"
        typer.echo(f"See {folder / 'log.txt'}. To {action} and continue:")
        typer.echo(f"  regard train --resume {folder} --set train.spikes.{change} --force")
    elif finished.shortfall:
        typer.echo(f"Best model so far: {folder / 'best'}")
        if finished.more_steps:
            typer.echo(f"Continue with: regard train --resume {folder} --more {finished.more_steps}")
    else:
        typer.echo(f"Best model: {folder / 'best'}")
        model = codec.MODEL_FILES.load(folder / "best" / "model.toml")
        media = {"patches": "images", "mel": "audio"}
        task = media.get(model.source.kind, model.task) if model.family == "encoder_only" else model.task
        task = "masked_patches" if task == "images" and model.task == "masked_lm" else task
        task = "pixels" if model.family == "decoder_only" and model.raster is not None else task
        if task in USES:
            command, text, test_data = USES[task]
            typer.echo(f"Use it: regard {command} {folder} " + (text if text.startswith("--") else f'"{text}"'))
            if test_data is not None:
                typer.echo(f"Measure it: regard evaluate {folder} {test_data}")
