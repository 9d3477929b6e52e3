"""`regard train`: train a model from text, or resume a run. `regard.training.api` does the work; this file displays it.

Exit codes: 0 finished, 1 error, 2 options that cannot be combined, 75 stopped on request after saving, 76 stopped by a
loss spike or divergence, 77 ranks failed again and again, 130 after a second Ctrl-C. With --ranks the launcher returns
the ranks' exit code.
"""

import os
import sys
from typing import TYPE_CHECKING

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251

from regard.base.formatting import quote_path
from regard.cli.command_start import command_start
from regard.cli.console import show_events
from regard.cli.options import takes_options
from regard.cli.train_export import check_exports, export_run
from regard.cli.train_options import PARAMETER_TYPES, TRAIN_PARAMETERS, TrainCommandOptions
from regard.config import codec
from regard.config.task_spec import find_spec
from regard.exchange.engine_cache import prepare_export
from regard.plan.outcome import read_outcome_listener
from regard.training.api import preview_run, start
from regard.training.distributed.rank import Worker, check_launcher
from regard.training.options import FinishedError, UsageError

if TYPE_CHECKING:
    from regard.training.events import Finished, Listener

EXIT_CODES = {"finished": 0, "no improvement": 0, "stop requested": 75, "spike": 76, "divergence": 76}
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
ADVANCED = """columns languages validation_source validation_target teacher seed track profile export force more
    without ranks hosts rendezvous max_restarts"""


@takes_options(TrainCommandOptions, TRAIN_PARAMETERS, PARAMETER_TYPES)
def train(options: TrainCommandOptions) -> None:
    """Train a model on text, images or audio clips. Settings that you leave out are chosen for you (see --explain).

    Ctrl-C saves a checkpoint and stops; --resume continues the run.
    """
    run_training(options)


def run_training(options: TrainCommandOptions) -> None:
    """Run a training command in this process or as one of several ranks; exits with the run's exit code."""
    started = command_start()
    worker = Worker.from_environment()
    if worker is not None:  # a launcher has started this process as one of several ranks
        if worker.folder is None and (options.dry_run or options.is_distributed):
            message = (
                f"RANK and WORLD_SIZE are set: a launcher started this process as one of {worker.world_size} ranks."
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
        finished = start(options, listeners, started=started, prepare_teacher=prepare_export)
    if outcome is not None and outcome.summary:
        typer.echo(outcome.summary)
        with (finished.folder / "log.txt").open("a", encoding="utf-8") as log:
            log.write(f"{outcome.summary}\n")
    _print_next_steps(finished)
    if EXIT_CODES[finished.reason] == 0:
        export_run(finished.folder, options)
    return EXIT_CODES[finished.reason]


def _train_rank(options: TrainCommandOptions, worker: Worker, started: float) -> int:
    """Train as one of several ranks. Only rank 0 displays progress; a retry resumes from the previous attempt."""
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
        return EXIT_CODES["finished"]  # the previous attempt finished the run and failed afterwards


def _launch(options: TrainCommandOptions) -> int:
    """Start the ranks and wait for them; this process does not train."""
    check_launcher()
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # before torch is imported: gloo warns about host names
    from regard.store.run_folder import RunFolder
    from regard.training.distributed.launcher import launch  # these import torch.distributed: only when needed
    from regard.training.distributed.rendezvous import Hosts, check_ranks

    check_ranks(options.ranks or 1, options.device_name)
    hosts = None
    if options.hosts is not None and options.rendezvous is not None:
        hosts = Hosts.parse(options.hosts, options.rendezvous)
    arguments = sys.argv[1:]
    if options.resume is not None and options.more is not None:  # an absolute total, so a retry can reuse it
        from regard.training.run import add_steps

        total = add_steps(options.resume, options.more)
        arguments = [
            *_remove_option(arguments, options.format_option("more")),
            options.format_option("steps"),
            str(total),
        ]
    arguments = ["-m", "regard", *arguments]
    return launch(
        arguments,
        options.ranks or 1,
        hosts=hosts,
        report=lambda line: _print_line(line, style="yellow"),
        checkpoints=None if options.folder is None else RunFolder(options.folder).checkpoints,
        max_restarts=options.max_restarts,
    )


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


def _print_next_steps(finished: "Finished") -> None:
    folder, name = finished.folder, quote_path(finished.folder)
    if finished.reason == "stop requested":
        typer.echo(f"Continue with: regard train --resume {name}")
    elif finished.reason == "spike":
        typer.echo(f"See {folder / 'log.txt'}. To skip the step that spiked and continue:")
        typer.echo(f"  regard train --resume {name} --set train.spikes.kind=recover --force")
    elif finished.reason == "divergence":
        typer.echo(f"See {folder / 'log.txt'}. To continue with a lower learning rate from before the divergence:")
        typer.echo(f"  regard train --resume {name} --set {finished.rate_change} --force")
    elif finished.shortfall:
        typer.echo(f"Best model so far: {folder / 'best'}")
        if finished.more_steps:
            typer.echo(f"Continue with: regard train --resume {name} --more {finished.more_steps}")
    else:
        typer.echo(f"Best model: {folder / 'best'}")
        model = codec.MODEL_FILES.load(folder / "best" / "model.toml")
        spec = find_spec(model.task)
        if spec.sample_input:
            text = spec.sample_input
            typer.echo(f"Use it: regard {spec.command} {name} " + (text if text.startswith("--") else f'"{text}"'))
            if spec.test_options is not None:
                typer.echo(f"Evaluate it: regard evaluate {name} {spec.test_options}")
