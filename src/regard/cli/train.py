"""`regard train`: train a model from text, or resume a run. `regard.train.start` does the work; this file displays it.

Exit codes: 0 finished, 1 error, 2 options that cannot be combined, 75 stopped on request after saving, 76 stopped by a
loss spike, 130 after a second Ctrl-C.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251

from regard.cli.allocator import tune_allocator
from regard.cli.options import takes_options
from regard.cli.train_options import PARAMETER_TYPES, TRAIN_PARAMETERS, TrainCommandOptions
from regard.config import codec
from regard.train.options import RUN_FILE, UsageError
from regard.train.start import make_plan, start

if TYPE_CHECKING:
    from regard.train.events import Finished, Listener

EXIT_CODES = {"finished": 0, "no improvement": 0, "stop requested": 75, "spike": 76}
EXAMPLES = """
regard train --source train.en --target train.de --out my-model
regard train --source train.en --target train.de --out my-model --minutes 10
regard train --text book.txt --out my-book
regard train --data reviews.tsv --out my-classifier
regard train --resume my-model
regard train --source train.en --target train.de --dry-run
"""
USES = {  # by task: the command that runs the model, a text for it, and the options of `regard evaluate`
    "translate": ("translate", "...", "--source TEST --reference TEST"),
    "continue": ("generate", "...", "--text TEST"),
    "fill": ("fill", "... ___ ...", "--text TEST"),
    "classify": ("label", "...", "--data TEST"),
    "tag": ("label", "...", "--data TEST"),
}


@takes_options(TrainCommandOptions, TRAIN_PARAMETERS, PARAMETER_TYPES)
def train(options: TrainCommandOptions) -> None:
    """Train a model from text. Settings that you do not give are chosen from the corpus, each with its reason.

    Ctrl-C saves a checkpoint and stops; --resume continues the run exactly.
    """
    started = time.perf_counter() - time.process_time()  # the process has worked for this long on its imports
    try:
        options = options.place_files()
        options.check()
        if options.dry_run:
            _print_plan(options)
            return
        notes = tune_allocator(is_enabled=options.wants_tuned_allocator)
        with show_events() as listener:
            finished = start(options, [listener], notes=notes, started=started)
    except UsageError as error:
        Console(stderr=True).print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    _print_next_steps(finished)
    raise typer.Exit(EXIT_CODES[finished.reason])


def _print_plan(options: TrainCommandOptions) -> None:
    with show_events() as listener:
        plan = make_plan(options, [listener])
        duration = plan.measure_duration([listener])
    typer.echo(f"- {duration}")
    typer.echo(f"\n{codec.RUN_FILES.dumps(plan.run)}", nl=False)


@contextmanager
def show_events() -> "Iterator[Listener]":
    """Show events: a live display on a terminal, plain lines elsewhere."""
    console = Console()
    if sys.stdout.isatty() and not console.is_dumb_terminal:
        from regard.cli.display import Display  # only when needed

        with Display(console) as display:
            yield display
    else:
        from regard.train.event_lines import LineLogger

        yield LineLogger(typer.echo)


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
        if task in USES:
            command, text, test_data = USES[task]
            typer.echo(f'Use it: regard {command} {folder} "{text}"')
            typer.echo(f"Measure it: regard evaluate {folder} {test_data}")
