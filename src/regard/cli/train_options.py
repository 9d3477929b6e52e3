"""What `regard train` was asked for, and which options do not fit together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import ConfigError, RegardError
from regard.config.run import AnySource, Documents
from regard.config.toml_file import parse_settings

ACCEPT_VALUES = ("data", "config")
StringList = list[str] | None


class UsageError(RegardError):
    """Options that do not fit together."""


@dataclass(frozen=True)
class TrainOptions:
    """What was asked for, as it was given."""

    run: Path | None
    source: StringList
    target: StringList
    text: StringList
    data: StringList
    out: Path | None
    languages: tuple[str, str] | None
    validation: StringList
    validation_source: StringList
    validation_target: StringList
    preset: str | None
    settings: StringList
    minutes: float | None
    updates: int | None
    seed: int | None
    resume: Path | None
    more: int | None
    accept: StringList
    pause_at: int | None
    track: StringList
    dry_run: bool

    def check(self) -> None:
        """Refuse options that do not fit together, before anything is read or made."""
        if self.resume is not None:
            self._check_resume()
        else:
            self._check_new()
        for name, number in self._list_numbers():
            if number is not None and number <= 0:
                raise UsageError(f"{name} is {number:g}: there is nothing to do.", fix="Give at least 1.")

    def _list_numbers(self) -> list[tuple[str, float | None]]:
        return [(_format_option(name), getattr(self, name)) for name in ("minutes", "updates", "more", "pause_at")]

    def _check_resume(self) -> None:
        given_options = self._list_given(
            "run", "source", "target", "text", "data", "out", "languages", "preset", "minutes", "seed"
        )
        given_options += self._list_given("validation", "validation_source", "validation_target", "dry_run")
        if given_options:
            raise UsageError(
                f"--resume goes on with a run that knows its {_describe_option(given_options[0])} already, and {given_options[0]} was given.",
                fix=f"Leave {given_options[0]} out, or start a new run with --out.",
            )
        if self.more is not None and self.updates is not None:
            fix = "--updates is the new total, counted from the run's beginning; --more adds to the old total."
            raise UsageError("Both --updates and --more were given.", fix=f"Say one of the two: {fix}")
        for value in self.accept or ():
            if value not in ACCEPT_VALUES:
                raise UsageError(f"--accept knows no '{value}'.", fix="Say data or config.")

    def _check_new(self) -> None:
        if resume_only := self._list_given("more", "accept"):
            fix = "Say --updates N for a new run." if self.more is not None else "Say --resume FOLDER."
            raise UsageError(f"{resume_only[0]} is for going on with a run (--resume).", fix=fix)
        corpus_options = self._list_given("source", "target", "text", "data")
        choice_options = ("preset", "minutes", "languages", "validation", "validation_source", "validation_target")
        if self.run is not None and (conflicting := corpus_options + self._list_given(*choice_options)):
            fix = "Write it into the run file, or leave the run file out."
            raise UsageError(f"The run file says what to train, and {conflicting[0]} was given beside it.", fix=fix)
        if self.minutes is not None and "train.updates" in self.changes:
            fix = "Say --minutes for as many updates as the time allows, or --updates for so many."
            raise UsageError("Both --minutes and a number of updates were given.", fix=fix)
        if self.run is None:
            self._check_corpus(corpus_options)
        if self.out is None and not self.dry_run:
            raise UsageError("Where shall the model go?", fix="Say --out FOLDER, with the name of a new folder.")

    def _check_corpus(self, given_options: list[str]) -> None:
        if not given_options:
            fix = "Say --source a.en --target a.de for pairs, --text book.txt for running text, or --data corpus.tsv."
            raise UsageError("What shall it learn from?", fix=fix)
        for name in ("source", "target", "validation_source", "validation_target"):
            files = getattr(self, name) or ()
            if len(files) > 1:
                fix = "Give each side once; for several corpora repeat --data, or write a run file."
                raise UsageError(f"{_format_option(name)} was given {len(files)} times.", fix=fix)
        for corpus_option in ("--text", "--data"):
            if corpus_option in given_options and len(given_options) > 1:
                other_option = next(option for option in given_options if option != corpus_option)
                fix = (
                    "For pairs say --source and --target; for running text --text alone; for other files --data alone."
                )
                raise UsageError(
                    f"{corpus_option} is a corpus by itself, and {other_option} was given beside it.", fix=fix
                )
        for source_name, target_name in (("source", "target"), ("validation_source", "validation_target")):
            _check_sides(source_name, getattr(self, source_name), target_name, getattr(self, target_name))

    def _list_given(self, *names: str) -> list[str]:
        return [_format_option(name) for name in names if getattr(self, name) not in (None, [], False)]

    @property
    def changes(self) -> dict[str, Any]:
        """What --set, --seed and --updates say, as paths and values."""
        try:
            changes = parse_settings(self.settings or ())
        except ConfigError as error:
            raise UsageError(f"--set {error.faults[0]}", fix="For example: --set train.clip=0.5") from None
        if "model.preset" in changes:
            raise UsageError(
                "--set model.preset comes too late: the model is chosen already.",
                fix="Say --preset, or write it into the run file.",
            )
        if self.seed is not None:
            changes |= {"seed": self.seed, "data.seed": self.seed}
        if self.updates is not None and self.resume is None:
            changes["train.updates"] = self.updates
        return changes

    @property
    def sources(self) -> list[AnySource]:
        """The corpus that the options describe."""
        return self._make_sources(self.source, self.target, self.text, self.data)

    @property
    def validation_sources(self) -> list[AnySource]:
        """The validation corpus, if there is one."""
        texts = self.validation if self.text else None
        return self._make_sources(
            self.validation_source, self.validation_target, texts, None if texts else self.validation
        )

    def _make_sources(
        self, source: StringList, target: StringList, text: StringList, data: StringList
    ) -> list[AnySource]:
        from regard.data.readers.detect import detect_source  # only when it is needed

        sources: list[AnySource] = [Documents(path=path) for path in text or ()]
        sources += [detect_source([path]) for path in data or ()]
        if source and target:
            sources.append(detect_source([source[0], target[0]]))
        if self.languages:
            sources = [corpus_source.model_copy(update={"languages": self.languages}) for corpus_source in sources]
        return sources


def _check_sides(source_name: str, source: StringList, target_name: str, target: StringList) -> None:
    if source and not target:
        fix = f"Say {_format_option(target_name)} FILE, too; for text without a translation say --text."
        raise UsageError(f"{_format_option(source_name)} {source[0]} has no {_format_option(target_name)}.", fix=fix)
    if target and not source:
        raise UsageError(
            f"{_format_option(target_name)} {target[0]} has no {_format_option(source_name)}.",
            fix=f"Say {_format_option(source_name)} FILE, too.",
        )
    if source and target and source == target:
        raise UsageError(
            f"{source[0]} was given as both sides: a model would learn to copy.",
            fix=f"Give {_format_option(target_name)} the file with the translations.",
        )


def _format_option(name: str) -> str:
    return "a run file" if name == "run" else f"--{name.replace('_', '-')}"


def _describe_option(option: str) -> str:
    return {"--out": "folder", "--preset": "model"}.get(option, "corpus and settings")
