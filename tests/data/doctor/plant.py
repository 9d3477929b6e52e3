# ruff: noqa: ARG001 - all kinds take the same two arguments
"""Defects to plant in a clean corpus: what the doctor must find. Each kind says by which rule it counts as found."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from regard.data.example import Example, Location

Pair = tuple[str, str]


@dataclass(frozen=True)
class Kind:
    """A defect: where it can be planted, how, and the rule that finds it."""

    name: str
    rule: str
    plant: Callable[[Pair, "Garden"], Pair | None]


@dataclass
class Garden:
    """What planting needs: the corpus, chance, sentences of a third language, and pairs of the test data."""

    pairs: list[Pair]
    chance: random.Random
    foreign: list[str]
    test: list[Pair]

    def other(self) -> Pair:
        return self.chance.choice(self.pairs)


@dataclass
class Planted:
    """The corpus with defects, and in which rows each kind was planted."""

    examples: list[Example]
    rows: dict[str, list[int]]


def _empty(pair: Pair, garden: Garden) -> Pair | None:
    return (pair[0], "") if garden.chance.random() < 0.5 else ("  ", pair[1])


def _duplicate(pair: Pair, garden: Garden) -> Pair | None:
    return garden.other()


def _near(pair: Pair, garden: Garden) -> Pair | None:
    """A pair that stands elsewhere, with one word of the source left out or doubled."""
    source, target = garden.other()
    words = source.split(" ")
    if len(words) < 10:
        return None
    place = garden.chance.randrange(len(words))
    changed = words[:place] + ([words[place]] * 2 if garden.chance.random() < 0.5 else []) + words[place + 1 :]
    return " ".join(changed), target


def _leaked(pair: Pair, garden: Garden) -> Pair | None:
    """A pair of the test data, in other case and spacing."""
    source, target = garden.chance.choice(garden.test)
    return garden.chance.choice([(source, target), (source.upper(), f"{target} "), (source.replace(" ", "  "), target)])


def _copy(pair: Pair, garden: Garden) -> Pair | None:
    return (pair[0], pair[0]) if len(pair[0].split()) >= 4 else None


def _untranslated(pair: Pair, garden: Garden) -> Pair | None:
    """The target is another sentence in the source's language, about as long."""
    other = garden.other()[0]
    return (pair[0], other) if 0.8 < len(other) / len(pair[0]) < 1.5 and other != pair[0] else None


def _foreign(pair: Pair, garden: Garden) -> Pair | None:
    text = garden.chance.choice(garden.foreign)
    return (pair[0], text) if garden.chance.random() < 0.5 else (text, pair[1])


def _swapped(pair: Pair, garden: Garden) -> Pair | None:
    return pair[1], pair[0]


def _mojibake(pair: Pair, garden: Garden) -> Pair | None:
    """The target's UTF-8 read as Windows-1252 or as Latin-1."""
    if pair[1].isascii():
        return None
    read = "latin-1" if garden.chance.random() < 0.5 else "cp1252"
    text = pair[1].encode().decode(read, "ignore")
    return pair[0], text


def _lost(pair: Pair, garden: Garden) -> Pair | None:
    """The target written as Latin-1 and read as UTF-8."""
    text = pair[1].encode("latin-1", "replace").decode("utf-8", "replace")
    return (pair[0], text) if "\ufffd" in text else None


def _control(pair: Pair, garden: Garden) -> Pair | None:
    sign = garden.chance.choice("\x00\x02\x08\x0b\x0c\x1b\x7f\x85\x96\r")
    place = garden.chance.randrange(1, len(pair[1]))
    return pair[0], pair[1][:place] + sign + pair[1][place:]


def _entity(pair: Pair, garden: Garden) -> Pair | None:
    text = re.sub("[\"'„“]", "&quot;", pair[1], count=1) if garden.chance.random() < 0.5 else pair[1]
    if text == pair[1]:
        text = re.sub("[äöüß]", lambda match: f"&#{ord(match[0])};", pair[1], count=1)
    return (pair[0], text) if text != pair[1] else None


def _number(pair: Pair, garden: Garden) -> Pair | None:
    """One digit of the target becomes another one, where both sides have numbers."""
    places = [match.start() for match in re.finditer("[0-9]", pair[1])]
    if not places or not re.search("[0-9]", pair[0]):
        return None
    place = garden.chance.choice(places)
    digit = garden.chance.choice([digit for digit in "123456789" if digit != pair[1][place]])
    return pair[0], pair[1][:place] + digit + pair[1][place + 1 :]


def _link(pair: Pair, garden: Garden) -> Pair | None:
    link = f"https://www.example.org/{garden.chance.randrange(1000)}"
    other = garden.chance.choice(["", link + "0", "mail@example.org"])
    return f"{pair[0]} {link}", f"{pair[1]} {other}".rstrip()


def _bracket(pair: Pair, garden: Garden) -> Pair | None:
    places = [match.start() for match in re.finditer("[()]", pair[1])]
    if not places or pair[0].count("(") != pair[1].count("("):
        return None
    place = garden.chance.choice(places)
    return pair[0], pair[1][:place] + pair[1][place + 1 :]


def _cut(pair: Pair, garden: Garden) -> Pair | None:
    """Most of one side is lost."""
    if min(map(len, pair)) < 60:
        return None
    source, target = pair
    keep = garden.chance.uniform(0.05, 0.25)
    return (
        (source, target[: int(len(target) * keep)])
        if garden.chance.random() < 0.5
        else (source[: int(len(source) * keep)], target)
    )


def _long(pair: Pair, garden: Garden) -> Pair | None:
    """Thirty pairs in one line."""
    others = [garden.other() for _ in range(30)]
    return " ".join(source for source, _ in others), " ".join(target for _, target in others)


KINDS = (
    Kind("empty side", "empty", _empty),
    Kind("duplicate", "duplicate", _duplicate),
    Kind("near duplicate", "near-duplicate", _near),
    Kind("leaked test pair", "leaked-pair", _leaked),
    Kind("copy", "copy", _copy),
    Kind("untranslated", "wrong-language", _untranslated),
    Kind("third language", "wrong-language", _foreign),
    Kind("swapped", "swapped-languages", _swapped),
    Kind("mojibake", "mojibake", _mojibake),
    Kind("lost characters", "replacement-character", _lost),
    Kind("control character", "control-character", _control),
    Kind("HTML code", "html-entity", _entity),
    Kind("number", "numbers", _number),
    Kind("address", "links", _link),
    Kind("bracket", "brackets", _bracket),
    Kind("cut off", "ratio", _cut),
    Kind("far too long", "too-long", _long),
)


def plant(pairs: list[Pair], foreign: list[str], test: list[Pair], each: int, seed: int = 1) -> Planted:
    """Plant every kind `each` times in rows of its own; duplicates stand after what they repeat."""
    garden = Garden(pairs, random.Random(seed), foreign, test)
    free = list(range(len(pairs)))
    garden.chance.shuffle(free)
    grown, rows = dict[int, Pair](), dict[str, list[int]]()
    for kind in KINDS:
        rows[kind.name] = []
        for row in free if kind.plant not in (_duplicate, _near) else ():
            defect = kind.plant(pairs[row], garden)
            if defect is not None and row not in grown:
                grown[row] = defect
                rows[kind.name].append(row)
            if len(rows[kind.name]) == each:
                break
        free = [row for row in free if row not in grown]
    mixed = [grown.get(row, pair) for row, pair in enumerate(pairs)]
    garden.pairs = [pairs[row] for row in free]  # what a repeat repeats must stand in the corpus, and before it
    for kind in KINDS:
        if kind.plant in (_duplicate, _near):
            while len(rows[kind.name]) < each:
                defect = kind.plant(("", ""), garden)
                if defect is not None:
                    rows[kind.name].append(len(mixed))
                    mixed.append(defect)
    examples = [Example(Location("train.en", row + 1), *pair) for row, pair in enumerate(mixed)]
    return Planted(examples, rows)


def clean_rows(planted: Planted) -> list[int]:
    """The rows in which nothing was planted."""
    bad = {row for rows in planted.rows.values() for row in rows}
    return [row for row in range(len(planted.examples)) if row not in bad]


def slipped(examples: list[Example], at: int, by: int = 1) -> list[Example]:
    """The corpus as two files of which the second lost `by` lines before row `at` (from 0)."""
    targets = [example.target for example in examples]
    del targets[at : at + by]
    return [replace(example, target=target) for example, target in zip(examples, targets, strict=False)]
