"""The `regard tune` command: fine-tune a trained model."""

from dataclasses import dataclass
from pathlib import Path

import typer  # noqa: TID251

from regard.cli.console import show_events
from regard.cli.options import check_input_file, check_model, file_option, option, takes_options
from regard.cli.train import run_training
from regard.cli.train_options import PARAMETER_TYPES, TRAIN_PARAMETERS, TrainCommandOptions
from regard.training.options import CORPUS, UsageError

EXAMPLES = """
regard tune my-model --source law.en --target law.de --out law-model
regard tune my-model law.tsv --out law-model --lora 8
regard tune my-encoder reviews.tsv --out sentiment --layers 2
regard tune my-model --suggestions suggestions.db --out better
"""
ADVANCED = """columns languages validation_source validation_target seed track profile export force ranks hosts
    rendezvous max_restarts film extra_layers fresh_layers freeze_embeddings add_tokens chat_template"""
CORPUS_PANEL = "Corpus"
PANEL = "Trained parameters (default: all)"
DISTRIBUTED = ("ranks", "hosts", "rendezvous")
LEFT_OUT = ("preset", "teacher", "resume", "more", "without")  # `regard train` has them
TUNE_PARAMETERS = {
    "parent": typer.Argument(metavar="MODEL", help="Model to fine-tune.", show_default=False, callback=check_model),
    **{name: parameter for name, parameter in TRAIN_PARAMETERS.items() if name not in LEFT_OUT},
    "files": typer.Argument(
        metavar="FILE", help="Corpus: source and target, or one file of any format.", show_default=False
    ),
    "suggestions": file_option(
        "Corrections stored by `regard serve --suggestions`.",
        panel=CORPUS_PANEL,
        callback=check_input_file,
    ),
    "minutes": option(
        "Total time in minutes; sets the number of steps and adapts it to the measured speed.",
        metavar="N",
        panel="Length of training",
    ),
    "lora": option("Train LoRA adapters of this rank and freeze the model's weights.", metavar="RANK"),
    "extra_layers": option("Add N new layers on top of each stack.", metavar="N"),
    "layers": option("Train only the last N layers of each stack, extra layers included.", metavar="N"),
    "fresh_layers": option("With --layers: reinitialize these layers.", "--fresh-layers"),
    "freeze_embeddings": option("Freeze the embeddings.", "--freeze-embeddings"),
    "add_tokens": file_option("File of strings to add to the vocabulary, one per line."),
    "chat_template": file_option("Jinja chat template that renders the prompts. Default: MODEL's.", panel=CORPUS_PANEL),
}
for _name in ("lora", "extra_layers", "layers", "fresh_layers", "freeze_embeddings", "add_tokens"):
    TUNE_PARAMETERS[_name].rich_help_panel = PANEL


@dataclass(frozen=True)
class TuneOptions(TrainCommandOptions):
    """Options of `regard tune`."""

    suggestions: Path | None = None

    def check_suggestions(self) -> None:
        """Raise an error for options that cannot be combined with suggestions."""
        names = ("files", *CORPUS, "columns", "languages", "chat_template", "dry_run", "export", *DISTRIBUTED)
        if given := self._list_given(*names):
            option = "a corpus" if given[0] == "files" else self.format_option(given[0])
            raise UsageError(f"--suggestions cannot be combined with {option}.", hint=f"Leave out {option}.")


@takes_options(TuneOptions, TUNE_PARAMETERS, {**PARAMETER_TYPES, "parent": Path}, required=("parent",))
def tune(options: TuneOptions) -> None:
    """Fine-tune a trained model on a corpus: all of its parameters, its last layers, or LoRA adapters.

    Use pairs to fine-tune a translator or to teach a language model to respond to prompts, text for a language model,
    labels or tags to train a new head on an encoder, and files with texts for captioning or transcription. Ctrl-C saves
    a checkpoint; `regard train --resume` continues the run.
    """
    if options.suggestions is None:
        run_training(options)
    else:
        _tune_on_corrections(options, options.suggestions)


def _tune_on_corrections(options: TuneOptions, suggestions: Path) -> None:
    from regard.training.corrections import tune_on_corrections  # imports torch: only when needed

    try:
        options.check_suggestions()
    except UsageError as error:
        typer.secho(str(error), fg="red", err=True)
        raise typer.Exit(2) from None
    with show_events(explain=options.explain) as listener:
        checks = tune_on_corrections(options, suggestions, [listener])
    for check in checks:
        typer.echo(f"Not worse: {check}")
    typer.echo(f"Accepted: {options.out}")
