"""The options of `regard evaluate`, and which of them exclude each other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.options import (
    COLUMNS_HELP,
    INPUT_PANEL,
    OUTPUT_PANEL,
    SEARCH_PANEL,
    LengthExponent,
    TargetLanguage,
    Unconstrained,
    Window,
    check_input_file,
    check_model,
    check_output_folder,
    file_option,
    option,
    output_file_option,
)
from regard.cli.text_input import check_paths

COMPARISON_PANEL = "Comparison"
DEFAULT_LENGTH_PENALTY = 1.0
Kind = Literal[
    "translations",
    "labeled data",
    "texts",
    "embeddings",
    "transcripts",
    "captions",
    "models that generate images",
    "--score",
]
KINDS_BY_OPTION: dict[str, tuple[Kind, ...]] = {  # the evaluations that each option is for
    "--target-language": ("translations", "--score"),
    "--window": ("texts", "--score"),
    "--train": ("translations",),
    "--probes": ("translations",),
    "--fit-temperature": ("translations", "texts"),
    "--other": ("translations", "labeled data"),
    "--other-output": ("translations", "labeled data"),
    "--output": ("translations", "labeled data", "transcripts", "captions"),
    "--unconstrained": ("labeled data",),
    "--beam": ("translations", "transcripts", "captions"),
    "--length-penalty": ("translations", "transcripts", "captions"),
}


@dataclass(frozen=True)
class EvaluateOptions:
    """The options of `regard evaluate`; None means not given."""

    folder: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="Model folder or run folder.", callback=check_model)
    ] = None
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="With --score: texts; for a translation model translations."),
    ] = None
    data: Annotated[
        Path | None,
        file_option(
            "Test data for any model: a table, .jsonl, .conllu, .tmx or .txt file, read as `regard train --data` does.",
            panel=INPUT_PANEL,
        ),
    ] = None
    columns: Annotated[str | None, option(COLUMNS_HELP, metavar="COLUMNS", panel=INPUT_PANEL)] = None
    images: Annotated[
        Path | None,
        option(
            "Test images: a folder with one folder per label, an idx or Parquet file, or a table of files and labels "
            "or captions.",
            metavar="FOLDER",
            panel=INPUT_PANEL,
        ),
    ] = None
    audio: Annotated[
        Path | None,
        option(
            "Test audio clips: a folder with one folder per label, or a table of files and labels or texts.",
            metavar="FOLDER",
            panel=INPUT_PANEL,
        ),
    ] = None
    source: Annotated[Path | None, file_option("Source texts, one per line.", panel=INPUT_PANEL)] = None
    reference: Annotated[
        list[Path] | None,
        file_option("Reference translations. Repeatable; further references may have empty lines.", panel=INPUT_PANEL),
    ] = None
    text: Annotated[Path | None, file_option("Held-out text for a language model.", panel=INPUT_PANEL)] = None
    lines: Annotated[bool, option("Treat every line of --text as a text of its own.", "--lines", panel=INPUT_PANEL)] = (
        False
    )
    source_text: Annotated[
        str | None, option("With --score: source of all texts.", metavar="TEXT", panel=INPUT_PANEL)
    ] = None
    hypotheses: Annotated[
        Path | None,
        file_option(
            "Evaluate the translations, labels or space-separated tags in this file instead of a model.",
            panel=INPUT_PANEL,
        ),
    ] = None
    train: Annotated[
        Path | None,
        file_option("Target side of the training corpus, for scores by word frequency.", panel=INPUT_PANEL),
    ] = None
    into: TargetLanguage = None
    other_model: Annotated[
        Path | None,
        option("Compare with another model.", "--other", metavar="MODEL", panel=COMPARISON_PANEL, callback=check_model),
    ] = None
    other_output: Annotated[
        Path | None,
        file_option("Compare with the translations, labels or tags in this file.", panel=COMPARISON_PANEL),
    ] = None
    samples: Annotated[int, option("Number of bootstrap resamples.", min=1, panel=COMPARISON_PANEL)] = 1000
    seed: Annotated[int, option("Random seed of the bootstrap resamples.", min=0, panel=COMPARISON_PANEL)] = 12345
    beam: Annotated[
        int | None,
        option("Beam size; 1 is greedy.", min=1, show_default="that of the model, else 5", panel=SEARCH_PANEL),
    ] = None
    length_penalty: LengthExponent = DEFAULT_LENGTH_PENALTY
    window: Window = None
    unconstrained: Unconstrained = False
    probes: Annotated[
        bool, option("Also run robustness probes: repetitive input, gender-swapped pairs.", "--probes")
    ] = False
    fit_temperature: Annotated[
        Path | None,
        option(
            "Fit a calibration temperature and write the model with it to a new folder.",
            metavar="FOLDER",
            callback=check_output_folder,
        ),
    ] = None
    output: Annotated[Path | None, output_file_option("Write the translations, labels or tags to this file.")] = None
    score: Annotated[
        bool,
        option(
            "Print log-probability (nats) and number of tokens of each text, eos included, instead of metrics.",
            "--score",
            panel=OUTPUT_PANEL,
        ),
    ] = False
    as_json: Annotated[
        bool, option("Print one JSON object with all results; with --score one per text.", "--json", panel=OUTPUT_PANEL)
    ] = False

    def check(self) -> None:
        """Raise an error for unreadable files and options that exclude each other, before any work."""
        files = (self.data, self.source, self.hypotheses, self.other_output, self.text, self.train)
        for file in (*files, *(self.reference or ())):
            check_input_file(file)
            check_paths(None, file, self.output)
        for is_wrong, message, hint in (*self._input_faults(), *self._other_faults()):
            if is_wrong:
                raise RegardError(message, hint=hint)

    def check_kind(self, kind: Kind) -> None:
        """Raise an error for options that have no meaning for this kind of evaluation."""
        given_options = {
            "--target-language": self.into is not None,
            "--window": self.window is not None,
            "--train": self.train is not None,
            "--probes": self.probes,
            "--fit-temperature": self.fit_temperature is not None,
            "--other": self.other_model is not None,
            "--other-output": self.other_output is not None,
            "--output": self.output is not None,
            "--unconstrained": self.unconstrained,
            "--beam": self.beam is not None,
            "--length-penalty": self.length_penalty != DEFAULT_LENGTH_PENALTY,
        }
        for name, is_given in given_options.items():
            if is_given and kind not in KINDS_BY_OPTION[name]:
                raise RegardError(f"{name} is not for {kind}.", hint=f"Leave out {name}.")

    @property
    def beam_size(self) -> int:
        """The beam size for models that state none."""
        return self.beam or 5

    @property
    def data_path(self) -> Path | None:
        """The test data that is not in parallel files."""
        return self.data or self.images or self.audio

    @property
    def _has_other(self) -> bool:
        return self.other_model is not None or self.other_output is not None

    def _input_faults(self) -> tuple[tuple[bool, str, str], ...]:
        has_hypotheses, has_text, has_data = (
            self.hypotheses is not None,
            self.text is not None,
            self.data_path is not None,
        )
        has_pairs = self.source is not None or bool(self.reference)
        has_texts = self.score and bool(self.texts)
        needs_references = has_hypotheses or self._has_other or self.fit_temperature is not None or not self.probes
        return (
            (
                bool(self.texts) and (not self.score or has_data or has_text or has_pairs),
                "TEXT needs --score and cannot be combined with files.",
                "Add --score, or give the test data with --source and --reference, --text or --data.",
            ),
            (
                self.source_text is not None and (not self.score or self.source is not None),
                "--source-text needs --score and cannot be combined with --source.",
                "Add --score, or leave out --source-text.",
            ),
            (
                self.score and self.folder is None,
                "--score needs a model.",
                "Give a model folder.",
            ),
            (
                self.folder is None and not has_hypotheses,
                "There is nothing to evaluate.",
                "Give a model folder, or --hypotheses FILE.",
            ),
            (
                self.folder is not None and has_hypotheses,
                "A model and --hypotheses were both given.",
                "Give one of them; to compare two systems use --other or --other-output.",
            ),
            (
                has_data and (has_text or has_pairs),
                "--data, --images and --audio cannot be combined with --source, --reference or --text.",
                "Give the test data as one file (--data), or as --source and --reference, or as --text.",
            ),
            (
                sum(path is not None for path in (self.data, self.images, self.audio)) > 1,
                "Two of --data, --images and --audio were given.",
                "Give one.",
            ),
            (
                has_text and (has_pairs or has_hypotheses or self.probes or self._has_other or self.output is not None),
                "--text cannot be combined with options for translation models.",
                "Give --text for a language model, or --source and --reference for a translation model.",
            ),
            (
                not has_text and not has_data and not self.reference and (self.output or self.train) is not None,
                "--output and --train need --reference.",
                "Add --reference FILE, or leave them out.",
            ),
            (
                not has_text and not has_data and not has_texts and not self.reference and needs_references,
                "There are no references.",
                "Give --reference FILE for a translation model, --data FILE for a classifier or tagger, --text FILE "
                "for a language model.",
            ),
            (
                not has_text
                and not has_data
                and not has_texts
                and (self.source or self.source_text) is None
                and (not has_hypotheses or self.other_model is not None),
                "There are no source texts.",
                "Give --source FILE.",
            ),
            (
                not has_text and not has_data and not self.score and self.window is not None,
                "--window needs --text or --data.",
                "Leave out --window.",
            ),
            (self.columns is not None and self.data is None, "--columns needs --data.", "Leave out --columns."),
            (self.lines and not has_text, "--lines needs --text.", "Leave out --lines."),
            (
                has_text and not self.score and self.into is not None,
                "--target-language is for translation models.",
                "Leave out --target-language.",
            ),
        )

    def _other_faults(self) -> tuple[tuple[bool, str, str], ...]:
        has_hypotheses = self.hypotheses is not None
        return (
            (
                has_hypotheses and (self.probes or self.unconstrained or self.fit_temperature is not None),
                "--probes, --unconstrained and --fit-temperature need a model.",
                "Give a model folder instead of --hypotheses.",
            ),
            (
                has_hypotheses and self.other_model is None and self.beam is not None,
                "--beam needs a model.",
                "Leave out --beam.",
            ),
            (
                has_hypotheses and self.output is not None,
                "--output needs a model: --hypotheses already is a file.",
                "Leave out --output.",
            ),
            (
                self.other_model is not None and self.other_output is not None,
                "--other and --other-output were both given.",
                "Give one of them.",
            ),
            (
                self.fit_temperature is not None and self.fit_temperature.exists(),
                f"{self.fit_temperature} already exists.",
                "Choose another name.",
            ),
        )
