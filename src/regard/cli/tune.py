"""The `regard tune` command: fine-tune a trained model."""

from pathlib import Path

import typer  # noqa: TID251

from regard.cli.options import check_model, file_option, option, takes_options
from regard.cli.train import run_training
from regard.cli.train_options import PARAMETER_TYPES, TRAIN_PARAMETERS, TrainCommandOptions

EXAMPLES = """
regard tune my-model --source law.en --target law.de --out law-model
regard tune my-model law.tsv --out law-model --lora 8
regard tune my-encoder reviews.tsv --out sentiment --layers 2
"""
ADVANCED = """columns languages validation_source validation_target seed track export force ranks hosts
    rendezvous extra_layers fresh_layers freeze_embeddings add_tokens chat_template"""
CORPUS_PANEL = "Corpus"
PANEL = "What is trained (default: all parameters)"
LEFT_OUT = ("preset", "teacher", "resume", "more")  # `regard train` has them
TUNE_PARAMETERS = {
    "parent": typer.Argument(
        metavar="MODEL", help="The model to start from.", show_default=False, callback=check_model
    ),
    **{name: parameter for name, parameter in TRAIN_PARAMETERS.items() if name not in LEFT_OUT},
    "files": typer.Argument(
        metavar="FILE", help="The corpus: source and target, or one file of any format.", show_default=False
    ),
    "minutes": option(
        "Time from command to exit: chooses the number of steps, and adapts it to the speed.",
        metavar="N",
        panel="Length of training",
    ),
    "lora": option("Train LoRA adapters of this rank; the model's own weights stay as they are.", metavar="RANK"),
    "extra_layers": option("Add N new layers on top of each stack.", metavar="N"),
    "layers": option("Train the last N layers of each stack only, extra ones included.", metavar="N"),
    "fresh_layers": option("With --layers: reinitialize these layers.", "--fresh-layers"),
    "freeze_embeddings": option("Keep the embeddings as they are.", "--freeze-embeddings"),
    "add_tokens": file_option("Texts that become tokens of their own, one per line."),
    "chat_template": file_option("Jinja chat template that renders the prompts. Default: MODEL's.", panel=CORPUS_PANEL),
}
for _name in ("lora", "extra_layers", "layers", "fresh_layers", "freeze_embeddings", "add_tokens"):
    TUNE_PARAMETERS[_name].rich_help_panel = PANEL


@takes_options(TrainCommandOptions, TUNE_PARAMETERS, {**PARAMETER_TYPES, "parent": Path}, required=("parent",))
def tune(options: TrainCommandOptions) -> None:
    """Fine-tune a trained model on a corpus: all of its parameters, its last layers, or LoRA adapters.

    Pairs continue a translator, or teach a language model to answer prompts; text continues a language model; labels
    and tags give an encoder a new head; files with texts continue a model that captions images or transcribes audio.
    Ctrl-C saves a checkpoint; `regard train --resume` continues the run.
    """
    run_training(options)
