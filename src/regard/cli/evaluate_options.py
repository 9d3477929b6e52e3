"""Command-line options of `regard evaluate` with their help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.options import (
    COLUMNS_HELP,
    INPUT_PANEL,
    OUTPUT_PANEL,
    SEARCH_PANEL,
    Engine,
    EngineOption,
    LengthExponent,
    TargetLanguage,
    Unconstrained,
    Window,
    check_input_files,
    check_model,
    check_output_folder,
    file_option,
    input_file_option,
    option,
    output_file_option,
)
from regard.tasks.evaluation.options import EvaluationOptions

COMPARISON_PANEL = "Comparison"


@dataclass(frozen=True)
class EvaluateCommandOptions(EvaluationOptions):
    """Evaluation options plus the options that only the command has."""

    texts: list[str] | None = None
    source_text: str | None = None
    score: bool = False
    as_json: bool = False
    engine: Engine = Engine.auto

    def check(self) -> None:
        """Raise an error for mutually exclusive options before any work starts."""
        has_files = self.source is not None or bool(self.reference) or super()._has_data
        for is_wrong, message, hint in (
            (
                bool(self.texts) and (not self.score or has_files),
                "TEXT needs --score and cannot be combined with files.",
                "Add --score, or give the test data with --source and --reference, --text or --data.",
            ),
            (
                self.source_text is not None and (not self.score or self.source is not None),
                "--source-text needs --score and cannot be combined with --source.",
                "Add --score, or leave out --source-text.",
            ),
            (self.score and self.model is None, "--score needs a model.", "Give a model folder."),
        ):
            if is_wrong:
                raise RegardError(message, hint=hint)
        super().check()

    @property
    def _has_source(self) -> bool:
        return super()._has_source or self.source_text is not None

    @property
    def _has_data(self) -> bool:
        return super()._has_data or bool(self.texts)

    @property
    def _scores_texts(self) -> bool:
        return self.score


PARAMETERS: dict[str, Any] = {
    "model": typer.Argument(metavar="MODEL", help="Model folder or run folder.", callback=check_model),
    "data": input_file_option(
        "Test data for any model: a table, .jsonl, .conllu, .tmx or .txt file, read like `regard train --data`."
    ),
    "columns": option(COLUMNS_HELP, metavar="COLUMNS", panel=INPUT_PANEL),
    "images": option(
        "Test images: a folder with one folder per label, an idx or Parquet file, or a table of files and labels "
        "or captions.",
        metavar="FOLDER",
        panel=INPUT_PANEL,
    ),
    "audio": option(
        "Test audio clips: a folder with one folder per label, or a table of files and labels or texts.",
        metavar="FOLDER",
        panel=INPUT_PANEL,
    ),
    "source": input_file_option("Source texts, one per line."),
    "reference": file_option(
        "Reference translations. Repeatable; further references may have empty lines.",
        panel=INPUT_PANEL,
        callback=check_input_files,
    ),
    "text": input_file_option("Held-out text for a language model."),
    "lines": option("Treat every line of --text as a separate text.", "--lines", panel=INPUT_PANEL),
    "hypotheses": input_file_option(
        "Evaluate the translations, labels or space-separated tags in this file instead of a model."
    ),
    "train": input_file_option("Target side of the training corpus, for scores by word frequency."),
    "target_language": get_args(TargetLanguage)[1],
    "other": option(
        "Compare with another model.", "--other", metavar="MODEL", panel=COMPARISON_PANEL, callback=check_model
    ),
    "other_output": input_file_option(
        "Compare with the translations, labels or tags in this file.", panel=COMPARISON_PANEL
    ),
    "samples": option("Number of bootstrap resamples.", min=1, panel=COMPARISON_PANEL),
    "seed": option("Random seed of the bootstrap resamples.", min=0, panel=COMPARISON_PANEL),
    "beam": option("Beam size; 1 is greedy.", min=1, show_default="the model's, else 5", panel=SEARCH_PANEL),
    "length_penalty": get_args(LengthExponent)[1],
    "window": get_args(Window)[1],
    "unconstrained": get_args(Unconstrained)[1],
    "probes": option("Also run robustness probes: repetitive input, gender-swapped pairs.", "--probes"),
    "engine": get_args(EngineOption)[1],
    "fit_temperature": option(
        "Fit a calibration temperature and write the model with it to a new folder.",
        metavar="FOLDER",
        callback=check_output_folder,
    ),
    "fit_quality": option(
        "Fit a quality estimate for translations and write the model with it to a new folder.",
        metavar="FOLDER",
        callback=check_output_folder,
    ),
    "output": output_file_option("Write the translations, labels or tags to this file."),
    "texts": typer.Argument(
        metavar="TEXT", help="With --score: texts to score; for a translation model, translations."
    ),
    "source_text": option("With --score: the source of all texts.", metavar="TEXT", panel=INPUT_PANEL),
    "score": option(
        "Print each text's log-probability (nats) and token count, eos included, instead of metrics.",
        "--score",
        panel=OUTPUT_PANEL,
    ),
    "as_json": option(
        "Print one JSON object with all results; with --score one per text.", "--json", panel=OUTPUT_PANEL
    ),
}
_PATHS = "model data images audio source text hypotheses train other other_output fit_temperature fit_quality output"
PARAMETER_TYPES: dict[str, Any] = dict.fromkeys(_PATHS.split(), Path | None) | {"reference": list[Path] | None}
