"""The options of a training run, for `regard train` and `regard.train`, and which of them exclude each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from regard.base.errors import ConfigError, RegardError
from regard.base.files import check_writable, is_leftover
from regard.config import codec
from regard.config.run import AnySourceConfig, DocumentsConfig, RunConfig
from regard.config.toml_file import parse_settings
from regard.text.chat_template import read_chat_template

RUN_FILE = "run.toml"  # also in store.model_folder, which imports torch
StringList = list[str] | None


class UsageError(RegardError):
    """Options that cannot be combined."""


class FinishedError(RegardError):
    """The run is finished: there is nothing left to train."""


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
    sounds: StringList = None
    out: Path | None = None
    languages: tuple[str, str] | None = None
    validation: StringList = None
    validation_source: StringList = None
    validation_target: StringList = None
    preset: str | None = None
    teacher: StringList = None
    settings: Sequence[str] | Mapping[str, Any] | None = None  # "a.b=c", or {"a.b": c}
    minutes: float | None = None
    updates: int | None = None
    seed: int | None = None
    resume: Path | None = None
    more: int | None = None
    track: StringList = None
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

    def spell(self, *names: str, **values: object) -> str:
        """Write options as the caller gave them: here as arguments of a function, in the cli as on a command line."""
        if "resume" in values:
            return f"regard.resume({values['resume']!r})"
        return ", ".join([*names, *(f"{name}={value!r}" for name, value in values.items())])

    def check(self) -> None:
        """Raise an error for options that exclude each other or a folder that cannot be used; it reads no corpus."""
        if self.resume is not None:
            self._check_resume(self.resume)
        else:
            self._check_new()
        for name in ("minutes", "updates", "more", "lora", "layers"):
            number = getattr(self, name)
            if number is not None and number <= 0:
                raise UsageError(f"{self.spell(name)} must be positive, got {number:g}.", fix="Give at least 1.")
        if self.out is not None:
            self._check_output_folder(self.out)

    def for_next_attempt(self) -> Self:
        """Return the options with which the ranks of the same command start again after a failure.

        A new run that has begun is resumed. Its folder was empty when the command began, so what it holds is ours.
        """
        if self.out is None or not (self.out / RUN_FILE).is_file():
            return self
        return type(self)(resume=self.out, track=self.track)

    def _check_resume(self, folder: Path) -> None:
        given_options = self._list_given(
            "run", "source", "target", "text", "data", "images", "sounds", "out", "languages", "preset"
        )
        given_options += self._list_given("columns")
        given_options += self._list_given("minutes", "seed")
        given_options += self._list_given("validation", "validation_source", "validation_target", "teacher")
        given_options += self._list_given("dry_run")
        if given_options:
            option = given_options[0]
            its_own = {"out": "folder", "preset": "model"}.get(option, "corpus and settings")
            raise UsageError(
                f"{self.spell('resume')} continues a run with its own {its_own}; {self.spell(option)} cannot be given.",
                fix=f"Leave out {self.spell(option)}, or start a new run with {self.spell('out')}.",
            )
        if self.more is not None and self.updates is not None:
            updates, more = self.spell("updates"), self.spell("more")
            fix = f"Give one of them: {updates} sets the new total, {more} adds to the old total."
            raise UsageError(f"Both {updates} and {more} were given.", fix=fix)
        if not (folder / RUN_FILE).is_file():
            what = f"This is not a run folder: it has no {RUN_FILE}." if folder.exists() else "There is no such folder."
            out = self.spell("out")
            raise RegardError(
                what, where=str(folder), fix=f"Give the {out} folder of a run; a new run starts with {out}."
            )

    def _check_new(self) -> None:
        if self.more is not None:
            fix = f"Use {self.spell(updates='N')} for a new run."
            raise UsageError(f"{self.spell('more')} needs {self.spell('resume')}.", fix=fix)
        corpus_options = self._list_given("source", "target", "text", "data", "images", "sounds")
        automatic_options: tuple[str, ...] = (
            "preset",
            "minutes",
            "languages",
            "validation",
            "validation_source",
            "validation_target",
            "columns",
        )
        if self.run is not None and self.parent is not None:
            fix = f"Give the files of a corpus, or use `regard train {self.run} --set tuning.parent={self.parent}`."
            raise UsageError("A model to tune cannot be combined with a run file, which names its own.", fix=fix)
        if self.run is not None and (conflicting := corpus_options + self._list_given(*automatic_options)):
            fix = "Put the setting into the run file, or leave out the run file."
            raise UsageError(f"{self.spell(conflicting[0])} cannot be combined with a run file.", fix=fix)
        if self.minutes is not None and "train.updates" in self.changes:
            minutes, updates = self.spell("minutes"), self.spell("updates")
            fix = f"Give {minutes} for as many updates as fit the time, or {updates} for a fixed number."
            raise UsageError(f"Both {minutes} and a number of updates were given.", fix=fix)
        if self.run is None:
            self._check_corpus(corpus_options)
        languages: Sequence[str] | None = self.languages  # from Python it may also be a string
        if languages is not None and (isinstance(languages, str) or len(languages) != 2):
            fix = "Give the source and the target language, e.g. en and de."
            raise UsageError(f"{self.spell('languages')} must be two names, got {self.languages!r}.", fix=fix)
        if self.out is None and not self.dry_run:
            fix = f"Give {self.spell(out='FOLDER')} with the name of a new folder."
            raise UsageError("There is no output folder.", fix=fix)

    def _check_corpus(self, given_options: list[str]) -> None:
        if not given_options:
            translation = self.spell(source="a.en", target="a.de")
            text, data = self.spell(text="book.txt"), self.spell(data="FILE")
            media = f"{self.spell(images='FOLDER')} for images, {self.spell(sounds='FOLDER')} for sounds"
            fix = f"Give {translation} to translate, {text} for a language model, {media}, or {data}."
            raise UsageError("There is no training corpus.", fix=fix)
        for name in ("source", "target", "validation_source", "validation_target"):
            files = getattr(self, name) or ()
            if len(files) > 1:
                fix = f"Give each side once; for several corpora repeat {self.spell('data')}, or write a run file."
                raise UsageError(f"{self.spell(name)} was given {len(files)} times.", fix=fix)
        for corpus_option in ("text", "data", "images", "sounds"):
            if corpus_option in given_options and len(given_options) > 1:
                conflicting = next(option for option in given_options if option != corpus_option)
                sides = f"{self.spell('source')} and {self.spell('target')}"
                alone = f"{self.spell('text', 'data', 'images')} or {self.spell('sounds')} alone"
                fix = f"Give {sides} for translation, or {alone}."
                raise UsageError(
                    f"{self.spell(corpus_option)} cannot be combined with {self.spell(conflicting)}.", fix=fix
                )
        if self.columns is not None and not self.data:
            fix = f"Give {self.spell(data='FILE')}, or leave it out."
            raise UsageError(f"{self.spell('columns')} needs {self.spell('data')}.", fix=fix)
        if self.teacher and self.text:
            fix = f"Give pairs: {self.spell(source='a.en', target='a.de')}."
            what = f"{self.spell('teacher')} cannot be combined with {self.spell('text')}: teachers translate."
            raise UsageError(what, fix=fix)
        for source_name, target_name in (("source", "target"), ("validation_source", "validation_target")):
            self._check_sides(source_name, target_name)

    def _check_sides(self, source_name: str, target_name: str) -> None:
        source, target = getattr(self, source_name), getattr(self, target_name)
        if source and not target:
            add = self.spell(**{target_name: "FILE"})
            fix = f"Add {add}; for text without translations use {self.spell('text')}."
            side = self.spell(**{source_name: source[0]})
            raise UsageError(f"{side} has no {self.spell(target_name)}.", fix=fix)
        if target and not source:
            side, add = self.spell(**{target_name: target[0]}), self.spell(**{source_name: "FILE"})
            raise UsageError(f"{side} has no {self.spell(source_name)}.", fix=f"Add {add}.")
        if source and target and source == target:
            raise UsageError(
                f"{source[0]} was given as both sides: the model would learn to copy.",
                fix=f"Give the file with the translations as {self.spell(target_name)}.",
            )

    def _check_output_folder(self, out: Path) -> None:
        """Raise an error unless a new run can be written here: now, not after the corpus was read."""
        check_writable(out.absolute())
        if (out / RUN_FILE).is_file():
            fix = f"Continue it with {self.spell(resume=str(out))}, or choose another folder."
            raise RegardError("This folder already contains a run.", where=str(out), fix=fix)
        if out.is_dir() and not all(map(is_leftover, out.iterdir())):
            raise RegardError("The folder is not empty.", where=str(out), fix="Choose a new folder.")

    def _list_given(self, *names: str) -> list[str]:
        return [name for name in names if getattr(self, name) not in (None, [], False)]

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that `settings`, `seed`, `teacher` and `updates` override, by path."""
        name = self.spell("settings")
        try:
            settings = self.settings or ()
            changes = _flatten(settings) if isinstance(settings, Mapping) else parse_settings(settings)
        except ConfigError as error:
            raise UsageError(f"{name} {error.faults[0]}", fix=f"For example: {name} train.clip=0.5") from None
        if "model.preset" in changes:
            fix = f"Use {self.spell('preset')}, or write it into the run file."
            raise UsageError(f"{name} cannot change model.preset.", fix=fix)
        if self.seed is not None:
            changes |= {"seed": self.seed, "data.seed": self.seed}
        if self.teacher:
            changes["distillation.teachers"] = list(self.teacher)
        if self.updates is not None and self.resume is None:
            changes["train.updates"] = self.updates
            if self.run is not None:  # the number counts, not the time that the run file may set
                changes = {"train.minutes": None, "train.max_updates": None} | changes
        if self.lora is not None:
            changes["tuning.lora.rank"] = self.lora
        if self.add_tokens is not None:
            changes["tuning.add_tokens"] = _read_tokens(self.add_tokens)
        if self.chat_template is not None:
            changes["tuning.chat_template"] = read_chat_template(self.chat_template)
        tuning = ("extra_layers", "layers", "fresh_layers", "freeze_embeddings")
        return changes | {f"tuning.{name}": getattr(self, name) for name in self._list_given(*tuning)}

    @property
    def sources(self) -> list[AnySourceConfig]:
        """The training corpus."""
        return self._make_sources(self.source, self.target, self.text, self.data, self.images, self.sounds)

    @property
    def validation_sources(self) -> list[AnySourceConfig]:
        """The validation corpus; empty if none was given."""
        texts = self.validation if self.text else None
        images = self.validation if self.images else None
        sounds = self.validation if self.sounds else None
        data = None if texts or images or sounds else self.validation
        return self._make_sources(self.validation_source, self.validation_target, texts, data, images, sounds)

    def _make_sources(
        self,
        source: StringList,
        target: StringList,
        text: StringList,
        data: StringList,
        images: StringList,
        sounds: StringList,
    ) -> list[AnySourceConfig]:
        from regard.data.readers.detect import detect_source, make_image_source, make_sound_source  # only when needed

        sources: list[AnySourceConfig] = [DocumentsConfig(path=path) for path in text or ()]
        changes = self.changes
        task, size = changes.get("model.task"), changes.get("model.source.size", changes.get("model.raster.size"))
        sources += [
            make_image_source(path, task).model_copy(update={"size": size and tuple(size)}) for path in images or ()
        ]
        sources += [make_sound_source(path, task) for path in sounds or ()]
        sources += [detect_source([path], self.columns) for path in data or ()]
        if source and target:
            sources.append(detect_source([source[0], target[0]]))
        if self.languages:
            sources = [corpus_source.model_copy(update={"languages": self.languages}) for corpus_source in sources]
        return sources

    def read_run(self) -> RunConfig | None:
        """Read the run file, or that of the folder to resume; None if the run is configured from a corpus."""
        if self.resume is not None:
            return codec.RUN_FILES.load(self.resume / RUN_FILE)
        if self.run is None:
            return None
        path = self.run
        if path.is_dir():
            fix = (
                f"To continue this run: {self.spell(resume=str(path))}."
                if (path / RUN_FILE).is_file()
                else f"Give a run file, or a corpus with {self.spell('text')} or {self.spell('data')}."
            )
            raise RegardError("This is a folder, not a run file.", where=str(path), fix=fix)
        try:
            return codec.RUN_FILES.load(path, self.changes)
        except ConfigError as error:
            if path.suffix == ".toml" or error.faults[0].path != "file":
                raise
            data, text = self.spell(data=str(path)), self.spell(text=str(path))
            fix = f"To train on this file as a corpus: {data}, or {text} for a language model."
            raise RegardError("This is not a run file: it is not TOML.", where=str(path), fix=fix) from None

    def _read_changed_run(self) -> RunConfig | None:
        """Read the run file with the changes of the command, also that of a run to resume."""
        if self.resume is not None:
            return codec.RUN_FILES.load(self.resume / RUN_FILE, self.changes)
        return self.read_run()

    @property
    def device_name(self) -> str:
        """The device of the run, "auto" if none was requested."""
        run = self._read_changed_run()
        return run.device.name if run is not None else str(self.changes.get("device.name", "auto"))


def _flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Write the tables of a run as paths, so that a table changes only the keys that it names.

    >>> _flatten({"train": {"clip": 0.5, "keep": 2}, "train.schedule": {"kind": "constant"}, "seed": 1})
    {'train.clip': 0.5, 'train.keep': 2, 'train.schedule': {'kind': 'constant'}, 'seed': 1}
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
        raise UsageError("The file of new tokens cannot be read.", where=str(path), fix="Give UTF-8 text.") from error
    return [line.strip() for line in lines if line.strip()]
