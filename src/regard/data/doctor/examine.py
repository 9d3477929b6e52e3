"""The examination: read a corpus, and find out what is wrong with which line.

The corpus is read twice here (once to learn what is usual in it, once to judge) and once more to show or write what was
found. Between the readings a line is numbers: 4 bytes of verdicts, its lengths and fingerprints, its MinHash portrait.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.data.doctor import agreement, characters, language, lengths
from regard.data.doctor.alignment import FEWEST, Alignment, align
from regard.data.doctor.language import Judge
from regard.data.doctor.leakage import HeldOut, Leak, between, leaks
from regard.data.doctor.near import Sketches
from regard.data.doctor.places import Places
from regard.data.doctor.prints import Prints, repeats
from regard.data.doctor.rules import BIT, RULES, Finding, Rule
from regard.data.doctor.statistics import Statistics, describe
from regard.data.example import CorpusError, Example, Location

Check = Callable[[Example], Finding | None]
Progress = Callable[[str, int], None]
_BATCH = 2048
_SAMPLE = 32_768


@dataclass(frozen=True, slots=True)
class Learned:
    """What is usual in this corpus."""

    lengths: lengths.Usual
    judge: Judge | None
    pairs: bool

    def checks(self) -> dict[str, Check]:
        """The rules that look at one line alone."""
        return {
            "empty": agreement.empty,
            "copy": agreement.copy,
            "mojibake": characters.mojibake,
            "replacement-character": characters.replacement,
            "control-character": characters.control,
            "too-long": self.lengths.too_long,
            "ratio": self.lengths.odd_ratio,
            "numbers": agreement.numbers,
            "links": agreement.links,
            "brackets": agreement.brackets,
            "html-entity": characters.entity,
            "invisible-character": characters.invisible,
            "long-word": self.lengths.long_word,
        }


@dataclass(slots=True)
class Diagnosis:
    """All that was found. `verdicts` has a bit for every rule (`BIT`) that speaks about a row."""

    rules: tuple[Rule, ...]
    statistics: Statistics
    learned: Learned
    places: Places
    verdicts: NDArray[np.uint32]
    partners: dict[str, dict[int, int | Location]] = field(default_factory=dict)
    """Of rules about two lines: the other one, a row of this corpus or a place in held-out data."""
    leaks: tuple[Leak, ...] = ()
    alignment: Alignment | None = None
    remarks: list[str] = field(default_factory=list)
    """What could not be checked, and why."""
    broken: CorpusError | None = None
    """Why reading ended before the end of the corpus, if it did."""

    def rows(self, rule: str) -> NDArray[np.int64]:
        """The rows about which a rule speaks."""
        return np.flatnonzero(self.verdicts & np.uint32(BIT[rule]))

    def removed(self) -> NDArray[np.bool_]:
        """Which rows a cleaned corpus leaves out."""
        bits = sum(BIT[rule.name] for rule in self.rules if rule.severity == "remove")
        return (self.verdicts & np.uint32(bits)) != 0


def examine(
    corpus: Iterable[Example],
    held_out: Mapping[str, Iterable[Example]] | None = None,
    *,
    rules: tuple[Rule, ...] = RULES,
    near: bool = True,
    judge: Judge | None = None,
    progress: Progress = lambda _task, _lines: None,
) -> Diagnosis:
    """Examine a corpus that can be read more than once; `held_out` are the corpora it must not share lines with."""
    if iter(corpus) is corpus:
        raise RegardError("The doctor reads a corpus more than once.", fix="Give a list, or an object with __iter__.")
    held = {name: HeldOut.read(examples) for name, examples in (held_out or {}).items()}
    learned, remarks = _learn(corpus, judge, progress)
    gathered = _Gathered(learned, near=near, leaks=bool(held))
    broken = None
    try:
        for batch in _batches(corpus):
            gathered.add(batch)
            progress("examine", len(batch))
    except CorpusError as error:
        broken = error  # what was read until here may show why: files of different lengths slipped somewhere
    diagnosis = gathered.diagnosis(rules, remarks)
    diagnosis.broken = broken
    _leaks(diagnosis, gathered.light, held)
    return diagnosis


class _Gathered:
    """What is kept of the lines while they pass."""

    def __init__(self, learned: Learned, *, near: bool, leaks: bool) -> None:
        self.learned = learned
        self.checks = [(BIT[name], check) for name, check in learned.checks().items()]
        self.verdicts = array("I")
        self.lengths = [array("I") for _ in range(2 if learned.pairs else 1)]
        self.words = [0] * len(self.lengths)
        self.places = Places()
        self.prints = Prints(lightly=False)
        self.light = Prints(lightly=True) if leaks else None
        self.sketches = Sketches() if near else None

    def add(self, batch: list[Example]) -> None:
        for example in batch:
            bits = 0
            for bit, check in self.checks:
                if check(example) is not None:
                    bits |= bit
            self.verdicts.append(bits)
            self.places.add(example.where)
            self.prints.add(example)
            if self.light is not None:
                self.light.add(example)
        sides = _sides(batch, pairs=self.learned.pairs)
        for number, texts in enumerate(sides):
            self.lengths[number].extend(map(len, texts))
            self.words[number] += sum(len(text.split()) for text in texts)
        if self.sketches is not None:
            self.sketches.add(["\n".join(texts) for texts in zip(*sides, strict=True)])
        self._judge(sides)

    def _judge(self, sides: list[list[str]]) -> None:
        judge = self.learned.judge
        if judge is None:
            return
        found = language.verdict(judge, sides)
        wrong = np.logical_or.reduce(found.wrong)
        begin = len(self.verdicts) - len(sides[0])
        for flags, rule in ((found.swapped, "swapped-languages"), (wrong, "wrong-language")):
            for place in np.flatnonzero(flags):
                self.verdicts[begin + int(place)] |= BIT[rule]

    def diagnosis(self, rules: tuple[Rule, ...], remarks: list[str]) -> Diagnosis:
        columns = [np.frombuffer(side, np.uint32) if side else np.empty(0, np.uint32) for side in self.lengths]
        verdicts = np.array(self.verdicts, np.uint32)
        found = Diagnosis(rules, describe(columns, self.words), self.learned, self.places, verdicts, remarks=remarks)
        _note(found, "duplicate", *repeats(self.prints.pair))
        _note(found, "repeated-source", *repeats(self.prints.source), unless=("duplicate",))
        if self.learned.pairs:
            _note(found, "repeated-target", *repeats(self.prints.target), unless=("duplicate",))
            found.alignment = align(*columns)
            for slip in found.alignment.slips:
                found.verdicts[slip.first : slip.last + 1] |= np.uint32(BIT["misaligned"])
            if not found.alignment.telling:
                few = len(found.verdicts) < FEWEST
                why = "there are too few lines" if few else "the lengths of the two sides never go together"
                remarks.append(f"Misaligned stretches were not looked for: {why}.")
        if self.sketches is not None:
            _note(found, "near-duplicate", *self.sketches.near(), unless=("duplicate",))
        return found


def _learn(corpus: Iterable[Example], judge: Judge | None, progress: Progress) -> tuple[Learned, list[str]]:
    """Learn from lines that are spread evenly over the corpus: every 2^n-th one."""
    kept: list[Example] = []
    step, remarks, pairs, row = 1, [], False, -1
    try:
        for row, example in enumerate(corpus):
            pairs = pairs or example.target is not None
            if row % step == 0:
                kept.append(example)
                if len(kept) > _SAMPLE:
                    kept, step = kept[::2], step * 2
            if row % _BATCH == 0:
                progress("learn", _BATCH)
    except CorpusError:
        if row < 0:
            raise
        # Otherwise the second reading meets it again, and reports it together with what came before.
    if row < 0:
        raise CorpusError("The corpus has no lines.", fix="Give files with text.")
    sides = _sides(kept, pairs=pairs)
    if judge is None:
        judge = language.learn([[text for text in texts if text.strip()] for texts in sides])
        if judge is None:
            remarks.append("Languages were not checked: there are too few lines to learn from.")
    return Learned(lengths.learn(sides), judge, pairs), remarks


def _leaks(found: Diagnosis, ours: Prints | None, held: dict[str, HeldOut]) -> None:
    if ours is None:
        return
    table = []
    for name, other in held.items():
        table.append(between("the corpus", ours, name, other.prints))
        for rule, rows, places in leaks(ours, other, pairs=found.learned.pairs):
            for row, place in zip(rows.tolist(), places.tolist(), strict=True):
                found.partners.setdefault(rule, {}).setdefault(row, other.places[place])
            found.verdicts[rows] |= np.uint32(BIT[rule])
    names = list(held)
    for number, first in enumerate(names):
        table += [between(first, held[first].prints, second, held[second].prints) for second in names[number + 1 :]]
    found.leaks = tuple(table)


def _note(
    found: Diagnosis, rule: str, rows: NDArray[np.int64], firsts: NDArray[np.int64], unless: tuple[str, ...] = ()
) -> None:
    """Mark rows by a rule about two lines, except where another rule has said it already."""
    said = np.uint32(sum(BIT[name] for name in (*unless, "empty")))
    new = (found.verdicts[rows] & said) == 0
    rows, firsts = rows[new], firsts[new]
    found.verdicts[rows] |= np.uint32(BIT[rule])
    found.partners[rule] = dict(zip(rows.tolist(), firsts.tolist(), strict=True))


def _sides(batch: list[Example], *, pairs: bool) -> list[list[str]]:
    sources = [example.source for example in batch]
    return [sources, [example.target or "" for example in batch]] if pairs else [sources]


def _batches(corpus: Iterable[Example]) -> Iterator[list[Example]]:
    """Lists of examples; what was read before an error comes before the error."""
    batch: list[Example] = []
    try:
        for example in corpus:
            batch.append(example)
            if len(batch) == _BATCH:
                yield batch
                batch = []
    except CorpusError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
