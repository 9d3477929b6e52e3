# ruff: noqa: ARG001 - all planting functions take the same two arguments
"""Defects to plant in a clean corpus, each with the rule that must find it."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from unicodedata import normalize

from regard.data.example import Example, Location

Pair = tuple[str, str]


@dataclass(frozen=True)
class DefectKind:
    """A kind of defect: the function that plants it (None where it does not fit), and the rule that finds it."""

    name: str
    rule: str
    plant: Callable[[Pair, "PlantingContext"], Pair | None]


@dataclass
class PlantingContext:
    """What planting needs: the corpus, a random generator, sentences of a third language, and test pairs."""

    pairs: list[Pair]
    rng: random.Random
    foreign: list[str]
    test: list[Pair]

    def sample_pair(self) -> Pair:
        return self.rng.choice(self.pairs)


@dataclass
class PlantedCorpus:
    """The corpus with defects, and the rows of each kind."""

    examples: list[Example]
    rows: dict[str, list[int]]


def _plant_empty(pair: Pair, context: PlantingContext) -> Pair | None:
    return (pair[0], "") if context.rng.random() < 0.5 else ("  ", pair[1])


def _plant_duplicate(pair: Pair, context: PlantingContext) -> Pair | None:
    return context.sample_pair()


def _plant_near_duplicate(pair: Pair, context: PlantingContext) -> Pair | None:
    """A pair of the corpus, with one word of the source removed or doubled."""
    source, target = context.sample_pair()
    words = source.split(" ")
    if len(words) < 10:
        return None
    index = context.rng.randrange(len(words))
    changed = words[:index] + ([words[index]] * 2 if context.rng.random() < 0.5 else []) + words[index + 1 :]
    return " ".join(changed), target


def _plant_leak(pair: Pair, context: PlantingContext) -> Pair | None:
    """A pair of the test data, with different case or spacing."""
    source, target = context.rng.choice(context.test)
    return context.rng.choice([(source, target), (source.upper(), f"{target} "), (source.replace(" ", "  "), target)])


def _plant_copy(pair: Pair, context: PlantingContext) -> Pair | None:
    return (pair[0], pair[0]) if len(pair[0].split()) >= 4 else None


def _plant_untranslated(pair: Pair, context: PlantingContext) -> Pair | None:
    """The target is another sentence in the source's language, about as long."""
    other_source = context.sample_pair()[0]
    return (pair[0], other_source) if 0.8 < len(other_source) / len(pair[0]) < 1.5 and other_source != pair[0] else None


def _plant_foreign(pair: Pair, context: PlantingContext) -> Pair | None:
    text = context.rng.choice(context.foreign)
    return (pair[0], text) if context.rng.random() < 0.5 else (text, pair[1])


def _plant_swap(pair: Pair, context: PlantingContext) -> Pair | None:
    return pair[1], pair[0]


def _plant_mojibake(pair: Pair, context: PlantingContext) -> Pair | None:
    """The target's UTF-8 read as Windows-1252 or as Latin-1."""
    if pair[1].isascii():
        return None
    encoding = "latin-1" if context.rng.random() < 0.5 else "cp1252"
    text = pair[1].encode().decode(encoding, "ignore")
    return pair[0], text


def _plant_lost_characters(pair: Pair, context: PlantingContext) -> Pair | None:
    """The target written as Latin-1 and read as UTF-8."""
    text = pair[1].encode("latin-1", "replace").decode("utf-8", "replace")
    return (pair[0], text) if "\ufffd" in text else None


def _plant_control(pair: Pair, context: PlantingContext) -> Pair | None:
    character = context.rng.choice("\x00\x02\x08\x0b\x0c\x1b\x7f\x85\x96\r")
    index = context.rng.randrange(1, len(pair[1]))
    return pair[0], pair[1][:index] + character + pair[1][index:]


def _plant_entity(pair: Pair, context: PlantingContext) -> Pair | None:
    text = re.sub("[\"'„“]", "&quot;", pair[1], count=1) if context.rng.random() < 0.5 else pair[1]
    if text == pair[1]:
        text = re.sub("[äöüß]", lambda match: f"&#{ord(match[0])};", pair[1], count=1)
    return (pair[0], text) if text != pair[1] else None


def _plant_number(pair: Pair, context: PlantingContext) -> Pair | None:
    """Change one digit of the target, where both sides have numbers."""
    positions = [match.start() for match in re.finditer("[0-9]", pair[1])]
    if not positions or not re.search("[0-9]", pair[0]):
        return None
    position = context.rng.choice(positions)
    digit = context.rng.choice([digit for digit in "123456789" if digit != pair[1][position]])
    return pair[0], pair[1][:position] + digit + pair[1][position + 1 :]


def _plant_link(pair: Pair, context: PlantingContext) -> Pair | None:
    link = f"https://www.example.org/{context.rng.randrange(1000)}"
    other_link = context.rng.choice(["", link + "0", "mail@example.org"])
    return f"{pair[0]} {link}", f"{pair[1]} {other_link}".rstrip()


def _plant_bracket(pair: Pair, context: PlantingContext) -> Pair | None:
    positions = [match.start() for match in re.finditer("[()]", pair[1])]
    if not positions or pair[0].count("(") != pair[1].count("("):
        return None
    position = context.rng.choice(positions)
    return pair[0], pair[1][:position] + pair[1][position + 1 :]


def _plant_cut(pair: Pair, context: PlantingContext) -> Pair | None:
    """Most of one side is lost."""
    if min(map(len, pair)) < 60:
        return None
    source, target = pair
    keep = context.rng.uniform(0.05, 0.25)
    return (
        (source, target[: int(len(target) * keep)])
        if context.rng.random() < 0.5
        else (source[: int(len(source) * keep)], target)
    )


def _plant_half(pair: Pair, context: PlantingContext) -> Pair | None:
    """The target is cut in the middle."""
    return (pair[0], pair[1][: int(len(pair[1]) * context.rng.uniform(0.4, 0.6))]) if len(pair[1]) >= 30 else None


def _plant_tag(pair: Pair, context: PlantingContext) -> Pair | None:
    """A tag or placeholder on one side."""
    words = pair[1].split(" ")
    index = context.rng.randrange(len(words))
    words[index] = context.rng.choice(["<b>{}</b>", "{}<br/>", '<x id="1">{}</x>', "{} {{0}}", "{} %s"]).format(
        words[index]
    )
    return pair[0], " ".join(words)


def _plant_decomposed(pair: Pair, context: PlantingContext) -> Pair | None:
    """The target has separate accents."""
    text = normalize("NFD", pair[1])
    return (pair[0], text) if text != pair[1] else None


def _plant_long(pair: Pair, context: PlantingContext) -> Pair | None:
    """Thirty pairs in one line."""
    sampled_pairs = [context.sample_pair() for _ in range(30)]
    return " ".join(source for source, _ in sampled_pairs), " ".join(target for _, target in sampled_pairs)


DEFECT_KINDS = (
    DefectKind("empty side", "empty", _plant_empty),
    DefectKind("duplicate", "duplicate", _plant_duplicate),
    DefectKind("near duplicate", "near-duplicate", _plant_near_duplicate),
    DefectKind("leaked test pair", "leaked-pair", _plant_leak),
    DefectKind("copy", "copy", _plant_copy),
    DefectKind("untranslated", "wrong-language", _plant_untranslated),
    DefectKind("third language", "wrong-language", _plant_foreign),
    DefectKind("swapped", "swapped-languages", _plant_swap),
    DefectKind("mojibake", "mojibake", _plant_mojibake),
    DefectKind("lost characters", "replacement-character", _plant_lost_characters),
    DefectKind("control character", "control-character", _plant_control),
    DefectKind("HTML entity", "html-entity", _plant_entity),
    DefectKind("number", "numbers", _plant_number),
    DefectKind("address", "links", _plant_link),
    DefectKind("bracket", "brackets", _plant_bracket),
    DefectKind("cut off", "ratio", _plant_cut),
    DefectKind("cut at half", "truncated", _plant_half),
    DefectKind("tag on one side", "tags", _plant_tag),
    DefectKind("separate accents", "normal-form", _plant_decomposed),
    DefectKind("far too long", "too-long", _plant_long),
)


def plant(pairs: list[Pair], foreign: list[str], test: list[Pair], each: int, seed: int = 1) -> PlantedCorpus:
    """Plant every kind `each` times, at most one per row; duplicates follow their originals."""
    context = PlantingContext(pairs, random.Random(seed), foreign, test)
    free = list(range(len(pairs)))
    context.rng.shuffle(free)
    planted, rows = dict[int, Pair](), dict[str, list[int]]()
    for kind in DEFECT_KINDS:
        rows[kind.name] = []
        for row in free if kind.plant not in (_plant_duplicate, _plant_near_duplicate) else ():
            defect = kind.plant(pairs[row], context)
            if defect is not None and row not in planted:
                planted[row] = defect
                rows[kind.name].append(row)
            if len(rows[kind.name]) == each:
                break
        free = [row for row in free if row not in planted]
    corpus = [planted.get(row, pair) for row, pair in enumerate(pairs)]
    context.pairs = [pairs[row] for row in free]  # the original of a duplicate must be in the corpus, before it
    for kind in DEFECT_KINDS:
        if kind.plant in (_plant_duplicate, _plant_near_duplicate):
            while len(rows[kind.name]) < each:
                defect = kind.plant(("", ""), context)
                if defect is not None:
                    rows[kind.name].append(len(corpus))
                    corpus.append(defect)
    examples = [Example(Location("train.en", row + 1), *pair) for row, pair in enumerate(corpus)]
    return PlantedCorpus(examples, rows)


def clean_rows(planted: PlantedCorpus) -> list[int]:
    """The rows without a planted defect."""
    bad = {row for rows in planted.rows.values() for row in rows}
    return [row for row in range(len(planted.examples)) if row not in bad]


def shift_targets(examples: list[Example], at: int, by: int = 1) -> list[Example]:
    """The corpus as if its target file had lost `by` lines at row `at` (from 0)."""
    targets = [example.target for example in examples]
    del targets[at : at + by]
    return [replace(example, target=target) for example, target in zip(examples, targets, strict=False)]
