"""Toy worlds: generated corpora in which one known mechanism solves the task, so that explanations can be checked.

it      the tag of "it" is its noun, and the last adjective decides which of two nouns that is
bank    the tag of "bank" is its sense, and one other word decides it
orders  the tag of an order number is its item, which stands in the entry with the same number
copy    the target is the source, symbol by symbol
dia     Malay "dia" is he or she, and English must choose: 4 of 5 nurses are she, 4 of 5 programmers he

No validation sentence occurs in the training data, and pairs of nouns that validate "it" never do.
"""

import json
import random
import shutil
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from itertools import product
from pathlib import Path

from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.base.formatting import quote_path

Example = tuple[str, str]  # words and one tag per word, or source and target; joined by spaces
Corpus = tuple[list[Example], list[Example]]  # to train and to validate

TRAINED = files("regard") / "assets" / "lectures"  # a folder per world whose trained model is bundled
ANIMALS = ("animal", "dog", "cat", "horse", "cow", "fox", "goat", "pig", "hen", "deer")
PLACES = ("street", "road", "river", "bridge", "field", "lake", "trail", "canal", "square", "track")
OF_ANIMALS = ("tired", "hungry", "scared", "lazy")
OF_PLACES = ("wide", "long", "wet", "busy")
PEOPLE = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hans")
CUES = {
    "river": ("fish", "boat", "reeds", "flood", "ducks", "current"),
    "money": ("loan", "check", "account", "cash", "interest", "savings"),
}
BANK_SENTENCES = (
    "{person} went to the bank because of the {cue}",
    "because of the {cue} {person} was at the bank again",
    "{person} saw the {cue} near the bank",
)
JOBS = {  # Malay, English, share of "she" in the training data
    "jururawat": ("nurse", 0.8),
    "guru": ("teacher", 0.8),
    "setiausaha": ("secretary", 0.8),
    "penari": ("dancer", 0.8),
    "pengaturcara": ("programmer", 0.2),
    "doktor": ("doctor", 0.2),
    "peguam": ("lawyer", 0.2),
    "juruterbang": ("pilot", 0.2),
}
TOWNS = ("Ipoh", "Klang", "Melaka", "Kuching", "Miri", "Sibu", "Taiping", "Kajang", "Batu", "Tawau", "Kota", "Johor")
TRAIN, VALIDATION = 2000, 120  # sentences


@dataclass(frozen=True)
class World:
    """A corpus, the file with the settings of a model that learns it, and the settings that differ."""

    make: Callable[[random.Random], Corpus]
    settings: str
    layers: int
    steps: int


def make_it(generator: random.Random) -> Corpus:
    """Hold out 15 of the 100 pairs of nouns, among them "animal" and "street"."""
    pairs = list(product(ANIMALS, PLACES))[1:]
    generator.shuffle(pairs)
    held_out, known = [(ANIMALS[0], PLACES[0]), *pairs[:14]], pairs[14:]

    def write(animal: str, place: str, adjective: str) -> Example:
        sentence = f"The {animal} did not cross the {place} because it was too {adjective}"
        return _tag(sentence, {"it": animal if adjective in OF_ANIMALS else place})

    train, validation = (
        [write(*pair, adjective) for pair in part for adjective in OF_ANIMALS + OF_PLACES] for part in (known, held_out)
    )
    return generator.choices(train, k=TRAIN), validation


def make_bank(generator: random.Random) -> Corpus:
    """Hold out sentences; every cue occurs in training."""
    sentences = [
        _tag(pattern.format(person=person, cue=cue), {"bank": sense})
        for pattern, person, (sense, cues) in product(BANK_SENTENCES, PEOPLE, CUES.items())
        for cue in cues
    ]
    generator.shuffle(sentences)
    return generator.choices(sentences[VALIDATION:], k=TRAIN), sentences[:VALIDATION]


def make_orders(generator: random.Random) -> Corpus:
    """Write five entries such as `order_104:e`, then the order number to look up."""
    return _draw_distinct(lambda: write_order(generator, 5))


def write_order(generator: random.Random, count: int) -> Example:
    """Write this number of entries, and one of their numbers."""
    items = {f"order_{number}": generator.choice("abcdef") for number in generator.sample(range(100, 110), count)}
    query = generator.choice(list(items))
    entries = " ".join(f"{order}:{item}" for order, item in items.items())
    return _tag(f"{entries} {query}", {query: items[query]})


def make_copy(generator: random.Random) -> Corpus:
    """Write two to ten letters twice."""
    return _draw_distinct(lambda: (write_symbols(generator, generator.randint(2, 10)),) * 2)


def write_symbols(generator: random.Random, count: int) -> str:
    """Write this number of letters."""
    return " ".join(generator.choices(string.ascii_lowercase[:20], k=count))


def make_dia(generator: random.Random) -> Corpus:
    """Translate "dia" by chance, with the share of "she" of the job; hold out pairs of a job and a town."""
    pairs = list(product(JOBS, TOWNS))
    generator.shuffle(pairs)

    def draw(job: str, town: str) -> Example:
        name, share = JOBS[job]
        pronoun = "she" if generator.random() < share else "he"
        return f"dia seorang {job} dan tinggal di {town}", f"{pronoun} is a {name} and lives in {town}"

    held_out, known = pairs[: len(JOBS) * 3], pairs[len(JOBS) * 3 :]
    return [draw(*generator.choice(known)) for _ in range(TRAIN)], [draw(*pair) for pair in held_out * 5]


def _tag(sentence: str, tags: Mapping[str, str]) -> Example:
    return sentence, " ".join(tags.get(word, "O") for word in sentence.split())


def _draw_distinct(draw: Callable[[], Example]) -> Corpus:
    examples: dict[Example, None] = {}
    while len(examples) < TRAIN + VALIDATION:
        examples[draw()] = None
    rows = list(examples)
    return rows[:TRAIN], rows[TRAIN:]


WORLDS = {
    "it": World(make_it, "world_tagger.toml", layers=2, steps=2000),
    "bank": World(make_bank, "world_tagger.toml", layers=1, steps=300),
    "orders": World(make_orders, "world_tagger.toml", layers=1, steps=300),
    "copy": World(make_copy, "world_translator.toml", layers=1, steps=1000),
    "dia": World(make_dia, "world_translator.toml", layers=1, steps=300),
}


def write_world(name: str, folder: Path, seed: int = 1) -> str:
    """Write a world's data files, run.toml and, if it is bundled, the trained model; return the training command."""
    if name not in WORLDS:
        raise RegardError(f"'{name}' is not a world.", hint=f"Choose one of {', '.join(WORLDS)}.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RegardError("The folder is not empty.", location=str(folder), hint="Choose a new folder.")
    world = WORLDS[name]
    train, validation = world.make(random.Random(seed))  # noqa: S311
    labels = json.dumps(sorted({tag for _, tags in train for tag in tags.split()}))
    values = {"folder": folder.as_posix(), "labels": labels, "layers": world.layers, "steps": world.steps}
    settings = (files("regard.lectures") / world.settings).read_text(encoding="utf-8")
    contents = {"run.toml": string.Template(settings).substitute(values)}
    for part, examples in (("train", train), ("validation", validation)):
        if "tagger" in world.settings:
            contents[f"{part}.conll"] = "\n".join(map(_format_tags, examples))
        else:
            for side, lines in zip(("source", "target"), zip(*examples, strict=True), strict=True):
                contents[f"{part}.{side}"] = "\n".join(lines) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        write_atomic(folder / file, content.encode())
    if (TRAINED / name).is_dir():
        with as_file(TRAINED / name) as model:
            shutil.copytree(model, folder / "trained")
    force = " --force" if name == "copy" else ""  # the corpus check takes equal sides for untranslated ones
    return f"regard train {quote_path(folder / 'run.toml')} --out {quote_path(folder / 'model')}{force}"


def _format_tags(example: Example) -> str:
    """Return a word and its tag per line."""
    words, tags = (part.split() for part in example)
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True))
