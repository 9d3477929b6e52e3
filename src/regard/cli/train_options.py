"""Command-line options of `regard train` with their help."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import typer  # noqa: TID251

from regard.cli.options import COLUMNS_HELP, StringList, check_existence, file_option, option
from regard.training.options import CORPUS, RUN_FILE, VALIDATION, TrainOptions, UsageError

ARGOS_SETTINGS = {"tokenizer.kind": "unigram", "tokenizer.byte_fallback": True, "tokenizer.joint": True}


@dataclass(frozen=True)
class TrainCommandOptions(TrainOptions):
    """Training options; errors name them as on the command line."""

    files: StringList = None
    export: StringList = None
    ranks: int | None = None
    hosts: int | None = None
    rendezvous: str | None = None
    max_restarts: int = 3
    explain: bool = False

    @property
    def changes(self) -> dict[str, Any]:
        """Settings overridden by options, by path; a resumed run keeps its own `export`."""
        if not self.export or self.resume is not None:
            return super().changes
        changes: dict[str, Any] = {"export": list(self.export)}
        if "argos" in self.export and self.run is None and self.parent is None:
            changes |= ARGOS_SETTINGS
        return changes | super().changes

    @property
    def is_distributed(self) -> bool:
        """Whether several processes train the model."""
        return (self.ranks or 1) > 1 or (self.hosts or 1) > 1

    def check(self) -> None:
        """Raise an error for mutually exclusive options or an unusable folder, without reading the corpus."""
        super().check()
        for name in ("ranks", "hosts"):
            if (number := getattr(self, name)) is not None and number < 1:
                raise UsageError(f"{self.format_option(name)} must be positive, got {number}.", hint="Give at least 1.")
        if self.rendezvous is None and (self.hosts or 1) > 1:
            hint = f"Add {self.format_option(rendezvous='HOST:PORT')} with the address of the first host."
            raise UsageError(f"{self.format_option('hosts')} needs {self.format_option('rendezvous')}.", hint=hint)
        if self.rendezvous is not None and (self.hosts or 1) == 1:
            hint = f"Add {self.format_option(hosts='N')}, or leave out {self.format_option('rendezvous')}."
            raise UsageError(
                f"{self.format_option('rendezvous')} needs {self.format_option('hosts')} of at least 2.", hint=hint
            )
        if self.run is None and self.resume is None and "argos" in (self.export or ()) and not self.languages:
            hint = "Add --languages with the source and the target language, e.g. en de."
            raise UsageError("--export argos needs --languages, which the package declares.", hint=hint)
        if self.is_distributed and self.dry_run:
            hint = f"Leave out {self.format_option('ranks')}: the settings are the same for any number of ranks."
            raise UsageError(f"{self.format_option('dry_run')} runs in one process.", hint=hint)

    def check_corpus(self) -> None:
        """Raise an error for missing files or folders before torch is imported."""
        for name in (*CORPUS, *VALIDATION):
            check_existence(getattr(self, name))

    def place_files(self) -> Self:
        """Return the options with positional files assigned to the options that they stand for.

        Two files are source and target. A single file is a run file (.toml), a text (.txt without columns) or a corpus
        in another format, as in `regard check`.

        Raises:
            UsageError: More than two files, or both files and options name the corpus.
        """
        if not self.files:
            return self
        if len(self.files) > 2:
            hint = "Give two aligned files; for several corpora repeat --data, or write a run file."
            raise UsageError(f"A corpus is one file or two aligned files, got {len(self.files)}.", hint=hint)
        run_files = [file for file in self.files if Path(file).suffix == ".toml" or (Path(file) / RUN_FILE).is_file()]
        if run_files and len(self.files) == 2:
            hint = "Give only the run file: it names its corpus."
            raise UsageError(f"The run file {run_files[0]} cannot be combined with another file.", hint=hint)
        if run_files:
            return replace(self, files=None, run=Path(run_files[0]))
        if corpus_options := self._list_given(*CORPUS):
            hint = "Give the corpus either as files or with options."
            raise UsageError(
                f"{self.format_option(corpus_options[0])} cannot be combined with {self.files[0]}.", hint=hint
            )
        if len(self.files) == 2:
            return replace(self, files=None, source=self.files[:1], target=self.files[1:])

        from regard.data.readers.detect import is_table  # only when needed
        from regard.data.readers.text_files import strip_compression

        is_text = strip_compression(self.files[0]).suffix.lower() == ".txt"
        is_text = is_text and self.columns is None and not is_table(self.files[0])
        return replace(self, files=None, text=self.files) if is_text else replace(self, files=None, data=self.files)

    def format_option(self, *names: str, **values: object) -> str:
        """Format options as on the command line."""
        spelled = {name: "a run file" if name == "run" else f"--{name.replace('_', '-')}" for name in (*names, *values)}
        resume = "--resume" if self.parent is None else "regard train --resume"  # `regard tune` has no such option
        spelled |= {"settings": "--set", "resume": resume}
        return " ".join([*(spelled[name] for name in names), *(f"{spelled[name]} {values[name]}" for name in values)])


TRAIN_PARAMETERS = {
    "files": typer.Argument(
        metavar="FILE",
        help="Corpus: source and target, or one file of any format; or a run file (.toml) with all settings.",
        show_default=False,
    ),
    "source": file_option("Source side, one sentence per line."),
    "target": file_option("Target side; line n translates line n of --source."),
    "text": file_option("Text for a language model: file or folder. Repeatable."),
    "data": file_option("Corpus in another format: .tsv, .jsonl, .tmx, .conllu, ... Repeatable."),
    "columns": option(COLUMNS_HELP, metavar="COLUMNS"),
    "images": file_option(
        "Images: a folder with one folder per label, an idx or Parquet file, or a table of files and labels or texts. "
        "Repeatable."
    ),
    "audio": file_option("Audio clips: a folder with one folder per label, or a table of files and labels or texts."),
    "out": option("New folder for checkpoints, log and the best model.", metavar="FOLDER"),
    "languages": option("Source and target language, e.g. en de.", metavar="SOURCE TARGET"),
    "validation": file_option("Validation corpus, in the format of --data, --text, --images or --audio. Repeatable."),
    "validation_source": file_option("Source side of the validation corpus."),
    "validation_target": file_option("Target side of the validation corpus."),
    "preset": option("Model preset (`regard model presets`). Default: chosen from the corpus size.", metavar="NAME"),
    "teacher": option("Teacher model for sequence-level distillation. Repeatable.", metavar="MODEL"),
    "settings": option("Override a setting, e.g. train.max_grad_norm=0.5. Repeatable.", "--set", metavar="A.B=C"),
    "minutes": option(
        "Total time in minutes; sets the model size and number of steps, and adapts the steps to the measured speed.",
        metavar="N",
    ),
    "steps": option("Total number of optimizer steps.", metavar="N"),
    "seed": option("Random seed: initial weights, dropout, data order, validation split.", metavar="N"),
    "without": option(
        "Repeat the run in FILE without these samples: a list of lines, or of pairs with tabs.", metavar="LIST"
    ),
    "resume": option("Resume the run in this folder.", metavar="FOLDER"),
    "more": option("With --resume: number of additional steps.", metavar="N"),
    "track": option("Log metrics to tensorboard, wandb, mlflow or prometheus. Repeatable.", metavar="TRACKER"),
    "profile": option("Write a torch profiler trace of these steps to FOLDER/profile, e.g. 10:20.", metavar="A:B"),
    "ranks": option("Number of processes that train the model together on this host.", metavar="N"),
    "hosts": option("Number of hosts; start the same command on each.", metavar="N"),
    "rendezvous": option("With --hosts: address and free port of the first host.", metavar="HOST:PORT"),
    "max_restarts": option(
        "Maximum number of restarts of all processes without a new checkpoint in between.", metavar="N", min=0
    ),
    "force": option(
        "Train even if the corpus check advises against it; with --resume: even if files or settings changed.",
        "--force",
    ),
    "export": option("Export the best model after training, e.g. to ctranslate2. Repeatable.", metavar="TARGET"),
    "explain": option("Print the reason for each setting, kernel timings and score signatures.", "--explain"),
    "film": option("Record outputs and attention of five examples; `regard look FOLDER` shows them.", "--film"),
    "dry_run": option("Print settings, reasons, cost and estimated time, then exit.", "--dry-run"),
}
PARAMETER_TYPES = {"settings": StringList}  # where the command-line type differs from the Python type
PANELS = {  # option headings in the help
    "Corpus": ("source", "target", "text", "data", "columns", "images", "audio", "languages", "force"),
    "Validation corpus (default: held out from the corpus)": ("validation", "validation_source", "validation_target"),
    "Model and settings": ("preset", "teacher", "settings", "seed"),
    "Length of training": ("minutes", "steps"),
    "Output": ("out", "film", "track", "profile", "export", "explain", "dry_run"),
    "Continue or repeat a run": ("resume", "more", "without"),
    "Several processes": ("ranks", "hosts", "rendezvous", "max_restarts"),
}
for panel, names in PANELS.items():
    for name in names:
        TRAIN_PARAMETERS[name].rich_help_panel = panel
