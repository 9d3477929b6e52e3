"""What `regard train` was asked for, and which options do not fit together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import ConfigError, RegardError
from regard.config import codec
from regard.config.run import AnySource, Documents

ACCEPT = ("data", "config")
Texts = list[str] | None


class UsageError(RegardError):
    """Options that do not fit together."""


@dataclass(frozen=True)
class Order:
    """What was asked for, as it was given."""

    run: Path | None
    source: Texts
    target: Texts
    text: Texts
    data: Texts
    out: Path | None
    languages: tuple[str, str] | None
    validation: Texts
    validation_source: Texts
    validation_target: Texts
    preset: str | None
    settings: Texts
    minutes: float | None
    updates: int | None
    seed: int | None
    resume: Path | None
    more: int | None
    accept: Texts
    pause_at: int | None
    track: Texts
    dry_run: bool

    def check(self) -> None:
        """Refuse options that do not fit together, before anything is read or made."""
        if self.resume is not None:
            self._check_resume()
        else:
            self._check_new()
        for name, number in self._numbers():
            if number is not None and number <= 0:
                raise UsageError(f"{name} is {number:g}: there is nothing to do.", fix="Give at least 1.")

    def _numbers(self) -> list[tuple[str, float | None]]:
        return [(_option(name), getattr(self, name)) for name in ("minutes", "updates", "more", "pause_at")]

    def _check_resume(self) -> None:
        given = self._given("run", "source", "target", "text", "data", "out", "languages", "preset", "minutes", "seed")
        given += self._given("validation", "validation_source", "validation_target", "dry_run")
        if given:
            raise UsageError(
                f"--resume goes on with a run that knows its {_kind_of(given[0])} already, and {given[0]} was given.",
                fix=f"Leave {given[0]} out, or start a new run with --out.",
            )
        if self.more is not None and self.updates is not None:
            fix = "--updates is the new total, counted from the run's beginning; --more adds to the old total."
            raise UsageError("Both --updates and --more were given.", fix=f"Say one of the two: {fix}")
        for word in self.accept or ():
            if word not in ACCEPT:
                raise UsageError(f"--accept knows no '{word}'.", fix="Say data or config.")

    def _check_new(self) -> None:
        if only := self._given("more", "accept"):
            fix = "Say --updates N for a new run." if self.more is not None else "Say --resume FOLDER."
            raise UsageError(f"{only[0]} is for going on with a run (--resume).", fix=fix)
        corpus = self._given("source", "target", "text", "data")
        beside = ("preset", "minutes", "languages", "validation", "validation_source", "validation_target")
        if self.run is not None and (other := corpus + self._given(*beside)):
            fix = "Write it into the run file, or leave the run file out."
            raise UsageError(f"The run file says what to train, and {other[0]} was given beside it.", fix=fix)
        if self.minutes is not None and "train.updates" in self.changes:
            fix = "Say --minutes for as many updates as the time allows, or --updates for so many."
            raise UsageError("Both --minutes and a number of updates were given.", fix=fix)
        if self.run is None:
            self._check_corpus(corpus)
        if self.out is None and not self.dry_run:
            raise UsageError("Where shall the model go?", fix="Say --out FOLDER, with the name of a new folder.")

    def _check_corpus(self, given: list[str]) -> None:
        if not given:
            fix = "Say --source a.en --target a.de for pairs, --text book.txt for running text, or --data corpus.tsv."
            raise UsageError("What shall it learn from?", fix=fix)
        for name in ("source", "target", "validation_source", "validation_target"):
            files = getattr(self, name) or ()
            if len(files) > 1:
                fix = "Give each side once; for several corpora repeat --data, or write a run file."
                raise UsageError(f"{_option(name)} was given {len(files)} times.", fix=fix)
        for whole in ("--text", "--data"):
            if whole in given and len(given) > 1:
                other = next(option for option in given if option != whole)
                fix = (
                    "For pairs say --source and --target; for running text --text alone; for other files --data alone."
                )
                raise UsageError(f"{whole} is a corpus by itself, and {other} was given beside it.", fix=fix)
        for first, second in (("source", "target"), ("validation_source", "validation_target")):
            _check_sides(first, getattr(self, first), second, getattr(self, second))

    def _given(self, *names: str) -> list[str]:
        return [_option(name) for name in names if getattr(self, name) not in (None, [], False)]

    @property
    def changes(self) -> dict[str, Any]:
        """What --set, --seed and --updates say, as paths and values."""
        try:
            changes = codec.parse_settings(self.settings or ())
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
        return self._sources(self.source, self.target, self.text, self.data)

    @property
    def validation_sources(self) -> list[AnySource]:
        """The validation corpus, if there is one."""
        texts = self.validation if self.text else None
        return self._sources(self.validation_source, self.validation_target, texts, None if texts else self.validation)

    def _sources(self, source: Texts, target: Texts, text: Texts, data: Texts) -> list[AnySource]:
        from regard.data.guess import detect_source  # only when it is needed

        found: list[AnySource] = [Documents(path=path) for path in text or ()]
        found += [detect_source([path]) for path in data or ()]
        if source and target:
            found.append(detect_source([source[0], target[0]]))
        if self.languages:
            found = [one.model_copy(update={"languages": self.languages}) for one in found]
        return found


def _check_sides(first: str, source: Texts, second: str, target: Texts) -> None:
    if source and not target:
        fix = f"Say {_option(second)} FILE, too; for text without a translation say --text."
        raise UsageError(f"{_option(first)} {source[0]} has no {_option(second)}.", fix=fix)
    if target and not source:
        raise UsageError(
            f"{_option(second)} {target[0]} has no {_option(first)}.", fix=f"Say {_option(first)} FILE, too."
        )
    if source and target and source == target:
        raise UsageError(
            f"{source[0]} was given as both sides: a model would learn to copy.",
            fix=f"Give {_option(second)} the file with the translations.",
        )


def _option(name: str) -> str:
    return "a run file" if name == "run" else f"--{name.replace('_', '-')}"


def _kind_of(option: str) -> str:
    return {"--out": "folder", "--preset": "model"}.get(option, "corpus and settings")
