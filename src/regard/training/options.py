"""Training options of `regard train` and `regard.train`, and checks for mutually exclusive ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

from regard.base.arguments import as_path, check_type
from regard.base.errors import ConfigError, RegardError
from regard.base.files import AnyPath, check_writable
from regard.config import codec
from regard.config.run import RunConfig
from regard.config.sources import AnySourceConfig
from regard.config.toml_file import parse_settings
from regard.store.run_folder import RunFolder
from regard.text.chat_template import read_chat_template

RUN_FILE = "run.toml"  # also in store.model_folder, which imports torch
FILES = ("text", "images", "audio", "data")  # options that name files or folders of a corpus
CORPUS = ("source", "target", *FILES)
VALIDATION = ("validation", "validation_source", "validation_target")
AUTOMATIC = ("preset", "minutes", "languages", *VALIDATION, "columns")  # options that are settings in a run file
FILM_POINTS = 40  # of `film`
StringList = list[str] | None
PLAIN_TYPES: dict[object, tuple[object, str]] = {  # of fields, with their runtime types
    int | None: (int, "a whole number"),
    float | None: (int | float, "a number"),
    str | None: (str, "a string"),
    bool: (bool, "True or False"),
}


class UsageError(RegardError):
    """Options that cannot be combined."""


class FinishedError(RegardError):
    """The run is already finished."""


@dataclass(frozen=True)
class TrainOptions:
    """The options of a training run; None means not given."""

    run: Path | None = None
    source: StringList = None
    target: StringList = None
    text: StringList = None
    data: StringList = None
    columns: str | None = None  # of `data`, see `regard.data.readers.columns.parse_columns`
    images: StringList = None
    audio: StringList = None
    out: Path | None = None
    languages: tuple[str, str] | None = None
    validation: StringList = None
    validation_source: StringList = None
    validation_target: StringList = None
    preset: str | None = None
    teacher: StringList = None
    settings: Sequence[str] | Mapping[str, Any] | None = None  # "a.b=c", or {"a.b": c}
    minutes: float | None = None
    steps: int | None = None
    film: bool = False
    seed: int | None = None
    without: Path | None = None  # a list of samples; `run` is then the folder of the run to repeat
    resume: Path | None = None
    more: int | None = None
    track: StringList = None
    profile: str | None = None  # the steps to profile, first:last
    dry_run: bool = False
    force: bool = False
    parent: Path | None = None  # the model to fine-tune
    lora: int | None = None  # rank
    extra_layers: int | None = None  # new ones on top of each stack
    layers: int | None = None  # the last ones of each stack
    fresh_layers: bool = False
    freeze_embeddings: bool = False
    add_tokens: Path | None = None  # a file of new tokens, one per line
    chat_template: Path | None = None  # a Jinja file

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """Normalize arguments from Python and JSON: any path type, and a single path instead of a list."""
        values = dict(arguments)
        for field in fields(cls):
            name, value = field.name, values.get(field.name)
            if value is None:
                continue
            if field.type in (StringList, Path | None):
                values[name] = _as_list(name, value) if field.type == StringList else as_path(name, value)
            elif field.type in PLAIN_TYPES:
                check_type(name, value, *PLAIN_TYPES[field.type])
        check_type(
            "settings", values.get("settings"), Mapping | Sequence | None, "settings by path, {'train.steps': 9}"
        )
        if isinstance(values.get("languages"), list):
            values["languages"] = tuple(values["languages"])
        return cls(**values)

    def format_option(self, *names: str, **values: object) -> str:
        """Format options for messages: here as function arguments, in the cli as on the command line."""
        if "resume" in values:
            return f"regard.resume({values['resume']!r})"
        return ", ".join([*names, *(f"{name}={value!r}" for name, value in values.items())])

    @property
    def folder(self) -> Path | None:
        """The folder of the run."""
        return self.resume or self.out

    def check(self) -> None:
        """Raise an error for mutually exclusive options or an unusable folder, without reading the corpus."""
        if self.resume is not None:
            self._check_resume(self.resume)
        elif self.without is not None:
            self._check_without()
        else:
            self._check_new()
        for name in ("minutes", "steps", "more", "lora", "layers"):
            number = getattr(self, name)
            if number is not None and number <= 0:
                raise UsageError(
                    f"{self.format_option(name)} must be positive, got {number:g}.", hint="Give at least 1."
                )
        _ = self.profiled_steps
        if self.out is not None:
            self._check_output_folder(self.out)

    @property
    def profiled_steps(self) -> range | None:
        """The steps to profile, the last one included."""
        if self.profile is None:
            return None
        first, _, last = self.profile.partition(":")
        if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last)):
            option = self.format_option("profile")
            hint = f"Give the first and the last step, for example {option} 10:20."
            raise UsageError(f"{option} must be two steps, got '{self.profile}'.", hint=hint)
        return range(int(first), int(last) + 1)

    def for_next_attempt(self) -> Self:
        """Return the options for restarting the ranks of this command after a failure.

        A new run that has begun is resumed. Its folder was empty when the command began, so its content belongs to this
        run.
        """
        if self.out is None or not (self.out / RUN_FILE).is_file():
            return self
        return type(self)(resume=self.out, track=self.track, profile=self.profile)

    def _check_resume(self, folder: Path) -> None:
        if given_options := self._list_given("run", *CORPUS, "out", *AUTOMATIC, "seed", "teacher", "dry_run"):
            option = given_options[0]
            its_own = {"out": "folder", "preset": "model"}.get(option, "corpus and settings")
            given, resume = self.format_option(option), self.format_option("resume")
            raise UsageError(
                f"{resume} continues a run with its own {its_own}; {given} cannot be given.",
                hint=f"Leave out {given}, or start a new run with {self.format_option('out')}.",
            )
        if self.more is not None and self.steps is not None:
            steps, more = self.format_option("steps"), self.format_option("more")
            hint = f"Give one of them: {steps} sets the new total, {more} adds to the old total."
            raise UsageError(f"Both {steps} and {more} were given.", hint=hint)
        if not (folder / RUN_FILE).is_file():
            message = (
                f"This is not a run folder: it has no {RUN_FILE}." if folder.exists() else "There is no such folder."
            )
            out = self.format_option("out")
            raise RegardError(
                message, location=str(folder), hint=f"Give the {out} folder of a run; a new run starts with {out}."
            )

    def _check_without(self) -> None:
        without = self.format_option("without")
        if self.run is None or not (self.run / RUN_FILE).is_file():
            hint = f"Give the folder of a finished run: regard train my-model {without} pairs.tsv."
            raise UsageError(f"{without} repeats a run, but no run folder was given.", hint=hint)
        given = self._list_given(*CORPUS, *AUTOMATIC, "settings", "steps", "seed", "teacher", "parent", "dry_run")
        if given:
            message = f"{without} repeats a run with its own settings; {self.format_option(given[0])} cannot be given."
            raise UsageError(message, hint=f"Leave out {self.format_option(given[0])}.")
        if self.out is None:
            hint = f"Give {self.format_option(out='FOLDER')} with the name of a new folder."
            raise UsageError("No output folder was given.", hint=hint)

    def _check_new(self) -> None:
        if self.more is not None:
            hint = f"Use {self.format_option(steps='N')} for a new run."
            raise UsageError(f"{self.format_option('more')} needs {self.format_option('resume')}.", hint=hint)
        corpus_options = self._list_given(*CORPUS)
        if self.run is not None and self.parent is not None:
            hint = f"Give the files of a corpus, or use `regard train {self.run} --set finetune.parent={self.parent}`."
            raise UsageError("A parent model cannot be combined with a run file, which names its own.", hint=hint)
        if self.run is not None and (conflicting := self._list_given(*CORPUS, *AUTOMATIC)):
            hint = "Put the setting into the run file, or leave out the run file."
            raise UsageError(f"{self.format_option(conflicting[0])} cannot be combined with a run file.", hint=hint)
        if self.minutes is not None and "train.steps" in self.changes:
            minutes, steps = self.format_option("minutes"), self.format_option("steps")
            hint = f"Give {minutes} to fit the steps into the time, or {steps} for a fixed number."
            raise UsageError(f"Both {minutes} and a number of steps were given.", hint=hint)
        if self.run is None:
            self._check_corpus(corpus_options)
        languages: Sequence[str] | None = self.languages  # from Python it may also be a string
        check_type("languages", languages, Sequence | None, "two names, for example ('en', 'de')")
        if languages is not None and (isinstance(languages, str) or len(languages) != 2):
            hint = "Give the source and the target language, e.g. en and de."
            raise UsageError(f"{self.format_option('languages')} must be two names, got {self.languages!r}.", hint=hint)
        if self.out is None and not self.dry_run:
            hint = f"Give {self.format_option(out='FOLDER')} with the name of a new folder."
            raise UsageError("No output folder was given.", hint=hint)

    def _check_corpus(self, given_options: list[str]) -> None:
        if not given_options:
            translation = self.format_option(source="a.en", target="a.de")
            text, data = self.format_option(text="book.txt"), self.format_option(data="FILE")
            media = f"{self.format_option(images='FOLDER')} for images, {self.format_option(audio='FOLDER')} for audio"
            hint = f"Give {translation} to translate, {text} for a language model, {media}, or {data}."
            raise UsageError("No training corpus was given.", hint=hint)
        for name in ("source", "target", "validation_source", "validation_target"):
            files = getattr(self, name) or ()
            if len(files) > 1:
                hint = (
                    f"Give each side once; for several corpora repeat {self.format_option('data')}, or use a run file."
                )
                raise UsageError(f"{self.format_option(name)} was given {len(files)} times.", hint=hint)
        for corpus_option in FILES:
            if corpus_option in given_options and len(given_options) > 1:
                conflicting = next(option for option in given_options if option != corpus_option)
                sides = f"{self.format_option('source')} and {self.format_option('target')}"
                alone = f"{self.format_option('text', 'data', 'images')} or {self.format_option('audio')} alone"
                hint = f"Give {sides} for translation, or {alone}."
                raise UsageError(
                    f"{self.format_option(corpus_option)} cannot be combined with {self.format_option(conflicting)}.",
                    hint=hint,
                )
        if self.columns is not None and not self.data:
            hint = f"Give {self.format_option(data='FILE')}, or leave it out."
            raise UsageError(f"{self.format_option('columns')} needs {self.format_option('data')}.", hint=hint)
        if self.teacher and self.text:
            hint = f"Give pairs: {self.format_option(source='a.en', target='a.de')}."
            teacher, text = self.format_option("teacher"), self.format_option("text")
            message = f"{teacher} cannot be combined with {text}: teachers need pairs."
            raise UsageError(message, hint=hint)
        for source_name, target_name in (("source", "target"), ("validation_source", "validation_target")):
            self._check_sides(source_name, target_name)

    def _check_sides(self, source_name: str, target_name: str) -> None:
        source, target = getattr(self, source_name), getattr(self, target_name)
        if source and not target:
            add = self.format_option(**{target_name: "FILE"})
            hint = f"Add {add}; for text without translations use {self.format_option('text')}."
            side = self.format_option(**{source_name: source[0]})
            raise UsageError(f"{side} has no {self.format_option(target_name)}.", hint=hint)
        if target and not source:
            side, add = self.format_option(**{target_name: target[0]}), self.format_option(**{source_name: "FILE"})
            raise UsageError(f"{side} has no {self.format_option(source_name)}.", hint=f"Add {add}.")
        if source and target and source == target:
            raise UsageError(
                f"{source[0]} was given for both sides: the model would learn to copy.",
                hint=f"Give the file with the translations as {self.format_option(target_name)}.",
            )

    def _check_output_folder(self, out: Path) -> None:
        """Raise an error unless a new run can be written here, before the corpus is read."""
        check_writable(out.absolute())
        if (out / RUN_FILE).is_file():
            hint = f"Continue it with {self.format_option(resume=str(out))}, or choose another folder."
            raise RegardError("This folder already contains a run.", location=str(out), hint=hint)
        if out.is_dir() and not RunFolder(out).is_new():
            raise RegardError("The folder is not empty.", location=str(out), hint="Choose a new folder.")

    def _list_given(self, *names: str) -> list[str]:
        return [name for name in names if getattr(self, name) not in (None, [], False)]

    @property
    def changes(self) -> dict[str, Any]:
        """Settings overridden by `settings`, `seed`, `teacher` and `steps`, by path."""
        name = self.format_option("settings")
        try:
            settings = self.settings or ()
            changes = _flatten(settings) if isinstance(settings, Mapping) else parse_settings(settings)
        except ConfigError as error:
            raise UsageError(f"{name} {error.faults[0]}", hint=f"For example: {name} train.max_grad_norm=0.5") from None
        if "model.preset" in changes:
            hint = f"Use {self.format_option('preset')}, or write it into the run file."
            raise UsageError(f"{name} cannot change model.preset.", hint=hint)
        if self.seed is not None:
            changes |= {"seed": self.seed, "data.seed": self.seed}
        if self.teacher:
            changes["distillation.teachers"] = list(self.teacher)
        if self.film:
            changes.setdefault("train.film_points", FILM_POINTS)
        if self.steps is not None and self.resume is None:
            changes["train.steps"] = self.steps
            if self.run is not None:  # the number overrides a time set in the run file
                changes = {"train.minutes": None, "train.max_steps": None} | changes
        if self.lora is not None:
            changes["finetune.lora.rank"] = self.lora
        if self.add_tokens is not None:
            changes["finetune.add_tokens"] = _read_tokens(self.add_tokens)
        if self.chat_template is not None:
            changes["finetune.chat_template"] = read_chat_template(self.chat_template)
        finetune = ("extra_layers", "layers", "fresh_layers", "freeze_embeddings")
        return changes | {f"finetune.{name}": getattr(self, name) for name in self._list_given(*finetune)}

    @property
    def sources(self) -> list[AnySourceConfig]:
        """The training corpus."""
        return self._make_sources(self.source, self.target, {name: getattr(self, name) for name in FILES})

    @property
    def validation_sources(self) -> list[AnySourceConfig]:
        """The validation corpus; empty if none was given."""
        name = next((name for name in FILES if getattr(self, name)), "data")
        return self._make_sources(self.validation_source, self.validation_target, {name: self.validation})

    def _make_sources(
        self, source: StringList, target: StringList, files: Mapping[str, StringList]
    ) -> list[AnySourceConfig]:
        from regard.data.readers.detect import (  # only when needed
            detect_documents,
            detect_source,
            make_audio_source,
            make_image_source,
        )

        changes = self.changes
        task, size = changes.get("model.task"), changes.get("model.source.size", changes.get("model.raster.size"))
        make: dict[str, Callable[[str], AnySourceConfig]] = {
            "text": detect_documents,
            "images": lambda path: make_image_source(path, task).model_copy(update={"size": size and tuple(size)}),
            "audio": lambda path: make_audio_source(path, task),
            "data": lambda path: detect_source([path], self.columns),
        }
        sources = [make[name](path) for name, paths in files.items() for path in paths or ()]
        if source and target:
            sources.append(detect_source([source[0], target[0]]))
        if self.languages:
            sources = [corpus_source.model_copy(update={"languages": self.languages}) for corpus_source in sources]
        return sources

    def read_run(self) -> RunConfig | None:
        """Read the run file, or the resumed folder's; None if the run is configured from a corpus."""
        if self.resume is not None:
            return codec.RUN_FILES.load(self.resume / RUN_FILE)
        if self.run is None:
            return None
        path = self.run
        if self.without is not None:
            return codec.RUN_FILES.load(path / RUN_FILE)
        if path.is_dir():
            hint = (
                f"To continue this run: {self.format_option(resume=str(path))}."
                if (path / RUN_FILE).is_file()
                else f"Give a run file, or a corpus with {self.format_option('text')} or {self.format_option('data')}."
            )
            raise RegardError("This is a folder, not a run file.", location=str(path), hint=hint)
        try:
            return codec.RUN_FILES.load(path, self.changes)
        except ConfigError as error:
            if path.suffix == ".toml" or error.faults[0].path != "file":
                raise
            data, text = self.format_option(data=str(path)), self.format_option(text=str(path))
            hint = f"To train on this file as a corpus: {data}, or {text} for a language model."
            raise RegardError("This is not a run file: it is not TOML.", location=str(path), hint=hint) from None

    @property
    def device_name(self) -> str:
        """The requested device, "auto" by default."""
        run = codec.RUN_FILES.load(self.resume / RUN_FILE, self.changes) if self.resume is not None else self.read_run()
        return run.device.name if run is not None else str(self.changes.get("device.name", "auto"))


def _as_list(name: str, paths: AnyPath | Iterable[AnyPath]) -> list[str]:
    """Return one path or several as a list of strings."""
    if isinstance(paths, str | PathLike):
        return [fspath(paths)]
    check_type(name, paths, Iterable, "a path or a list of paths")
    return [fspath(as_path(name, path)) for path in paths]


def _flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten the tables of a run into paths, so a table changes only the keys that it contains.

    >>> _flatten({"train": {"max_grad_norm": 0.5, "ema": 0.9}, "train.schedule": {"kind": "constant"}, "seed": 1})
    {'train.max_grad_norm': 0.5, 'train.ema': 0.9, 'train.schedule': {'kind': 'constant'}, 'seed': 1}
    """
    changes: dict[str, Any] = {}
    for path, value in settings.items():
        is_table = isinstance(value, Mapping) and "." not in path
        changes |= {f"{path}.{key}": item for key, item in value.items()} if is_table else {path: value}
    return changes


def _read_tokens(path: Path) -> list[str]:
    """Read new tokens, one per line."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "The file of new tokens cannot be read.", location=str(path), hint="Give UTF-8 text."
        ) from error
    return [line.strip() for line in lines if line.strip()]
