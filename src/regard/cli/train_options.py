"""The options of `regard train`, and which of them exclude each other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import ConfigError, RegardError
from regard.cli.options import StringList, file_option, option
from regard.config.run import AnySource, Documents
from regard.config.toml_file import parse_settings

ACCEPT_VALUES = ("data", "config")


class UsageError(RegardError):
    """Options that cannot be combined."""


@dataclass(frozen=True)
class TrainOptions:
    """The options of `regard train`; None means not given."""

    run: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="Run file (TOML) with all settings, instead of a corpus.")
    ] = None
    source: Annotated[StringList, file_option("Source side, one sentence per line.")] = None
    target: Annotated[StringList, file_option("Target side: line n translates line n of --source.")] = None
    text: Annotated[StringList, file_option("Text for a language model: file or folder. Repeatable.")] = None
    data: Annotated[
        StringList, file_option("Corpus of another format: .tsv, .jsonl, .tmx, .conllu, ... Repeatable.")
    ] = None
    out: Annotated[Path | None, option("New folder for checkpoints, log and the best model.", metavar="FOLDER")] = None
    languages: Annotated[tuple[str, str] | None, option("Source and target language, e.g. en de.")] = None
    validation: Annotated[
        StringList, file_option("Validation corpus, in the format of --data or --text. Repeatable.")
    ] = None
    validation_source: Annotated[StringList, file_option("Source side of the validation corpus.")] = None
    validation_target: Annotated[StringList, file_option("Target side of the validation corpus.")] = None
    preset: Annotated[
        str | None, option("Model preset (`regard model presets`). Default: chosen from the corpus size.")
    ] = None
    settings: Annotated[
        StringList,
        option("Override a setting, e.g. train.clip=0.5. Repeatable.", "--set", metavar="A.B=C"),
    ] = None
    minutes: Annotated[float | None, option("Time budget: chooses model size and number of updates to fit.")] = None
    updates: Annotated[int | None, option("Total number of optimizer updates.")] = None
    seed: Annotated[int | None, option("Random seed: initial weights, dropout, data order, validation split.")] = None
    resume: Annotated[Path | None, option("Continue the run in this folder.", metavar="FOLDER")] = None
    more: Annotated[int | None, option("With --resume: number of updates beyond the old total.")] = None
    accept: Annotated[
        StringList,
        option("With --resume: continue although data or settings changed.", metavar="data|config"),
    ] = None
    pause_at: Annotated[int | None, option("Stop after this update; continue with --resume.")] = None
    track: Annotated[
        StringList,
        option("Log metrics to tensorboard, wandb or mlflow. Repeatable.", metavar="TRACKER"),
    ] = None
    dry_run: Annotated[bool, option("Print settings, cost and estimated time, then exit.", "--dry-run")] = False

    def check(self) -> None:
        """Raise a UsageError for options that exclude each other, before anything is read or created."""
        if self.resume is not None:
            self._check_resume()
        else:
            self._check_new()
        for name, number in self._list_numbers():
            if number is not None and number <= 0:
                raise UsageError(f"{name} must be positive, got {number:g}.", fix="Give at least 1.")

    def _list_numbers(self) -> list[tuple[str, float | None]]:
        return [(_format_option(name), getattr(self, name)) for name in ("minutes", "updates", "more", "pause_at")]

    def _check_resume(self) -> None:
        given_options = self._list_given(
            "run", "source", "target", "text", "data", "out", "languages", "preset", "minutes", "seed"
        )
        given_options += self._list_given("validation", "validation_source", "validation_target", "dry_run")
        if given_options:
            option = given_options[0]
            raise UsageError(
                f"--resume continues a run with its own {_describe_option(option)}; {option} cannot be given.",
                fix=f"Leave out {option}, or start a new run with --out.",
            )
        if self.more is not None and self.updates is not None:
            fix = "Give one of them: --updates sets the new total, --more adds to the old total."
            raise UsageError("Both --updates and --more were given.", fix=fix)
        for value in self.accept or ():
            if value not in ACCEPT_VALUES:
                raise UsageError(
                    f"--accept must be data or config, got '{value}'.", fix="Use --accept data or --accept config."
                )

    def _check_new(self) -> None:
        if resume_only := self._list_given("more", "accept"):
            fix = "Use --updates N for a new run." if self.more is not None else "Add --resume FOLDER."
            raise UsageError(f"{resume_only[0]} needs --resume.", fix=fix)
        corpus_options = self._list_given("source", "target", "text", "data")
        automatic_options = ("preset", "minutes", "languages", "validation", "validation_source", "validation_target")
        if self.run is not None and (conflicting := corpus_options + self._list_given(*automatic_options)):
            fix = "Put the setting into the run file, or leave out the run file."
            raise UsageError(f"{conflicting[0]} cannot be combined with a run file.", fix=fix)
        if self.minutes is not None and "train.updates" in self.changes:
            fix = "Give --minutes for as many updates as fit the time, or --updates for a fixed number."
            raise UsageError("Both --minutes and a number of updates were given.", fix=fix)
        if self.run is None:
            self._check_corpus(corpus_options)
        if self.out is None and not self.dry_run:
            raise UsageError("There is no output folder.", fix="Give --out FOLDER with the name of a new folder.")

    def _check_corpus(self, given_options: list[str]) -> None:
        if not given_options:
            fix = "Give --source a.en --target a.de to translate, --text book.txt for a language model, or --data FILE."
            raise UsageError("There is no training corpus.", fix=fix)
        for name in ("source", "target", "validation_source", "validation_target"):
            files = getattr(self, name) or ()
            if len(files) > 1:
                fix = "Give each side once; for several corpora repeat --data, or write a run file."
                raise UsageError(f"{_format_option(name)} was given {len(files)} times.", fix=fix)
        for corpus_option in ("--text", "--data"):
            if corpus_option in given_options and len(given_options) > 1:
                conflicting = next(option for option in given_options if option != corpus_option)
                fix = "Give --source and --target for translation, or --text alone, or --data alone."
                raise UsageError(f"{corpus_option} cannot be combined with {conflicting}.", fix=fix)
        for source_name, target_name in (("source", "target"), ("validation_source", "validation_target")):
            _check_sides(source_name, getattr(self, source_name), target_name, getattr(self, target_name))

    def _list_given(self, *names: str) -> list[str]:
        return [_format_option(name) for name in names if getattr(self, name) not in (None, [], False)]

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that --set, --seed and --updates override, by path."""
        try:
            changes = parse_settings(self.settings or ())
        except ConfigError as error:
            raise UsageError(f"--set {error.faults[0]}", fix="For example: --set train.clip=0.5") from None
        if "model.preset" in changes:
            raise UsageError("--set cannot change model.preset.", fix="Use --preset, or write it into the run file.")
        if self.seed is not None:
            changes |= {"seed": self.seed, "data.seed": self.seed}
        if self.updates is not None and self.resume is None:
            changes["train.updates"] = self.updates
        return changes

    @property
    def sources(self) -> list[AnySource]:
        """The training corpus."""
        return self._make_sources(self.source, self.target, self.text, self.data)

    @property
    def validation_sources(self) -> list[AnySource]:
        """The validation corpus; empty if none was given."""
        texts = self.validation if self.text else None
        return self._make_sources(
            self.validation_source, self.validation_target, texts, None if texts else self.validation
        )

    def _make_sources(
        self, source: StringList, target: StringList, text: StringList, data: StringList
    ) -> list[AnySource]:
        from regard.data.readers.detect import detect_source  # only when needed

        sources: list[AnySource] = [Documents(path=path) for path in text or ()]
        sources += [detect_source([path]) for path in data or ()]
        if source and target:
            sources.append(detect_source([source[0], target[0]]))
        if self.languages:
            sources = [corpus_source.model_copy(update={"languages": self.languages}) for corpus_source in sources]
        return sources


def _check_sides(source_name: str, source: StringList, target_name: str, target: StringList) -> None:
    if source and not target:
        fix = f"Add {_format_option(target_name)} FILE; for text without translations use --text."
        raise UsageError(f"{_format_option(source_name)} {source[0]} has no {_format_option(target_name)}.", fix=fix)
    if target and not source:
        raise UsageError(
            f"{_format_option(target_name)} {target[0]} has no {_format_option(source_name)}.",
            fix=f"Add {_format_option(source_name)} FILE.",
        )
    if source and target and source == target:
        raise UsageError(
            f"{source[0]} was given as both sides: the model would learn to copy.",
            fix=f"Give the file with the translations as {_format_option(target_name)}.",
        )


def _format_option(name: str) -> str:
    return "a run file" if name == "run" else f"--{name.replace('_', '-')}"


def _describe_option(option: str) -> str:
    return {"--out": "folder", "--preset": "model"}.get(option, "corpus and settings")
