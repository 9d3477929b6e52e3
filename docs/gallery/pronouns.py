"""Write sentences in which the last word decides what "it" refers to: python docs/gallery/pronouns.py.

Every word has the tag O, except "it": its tag is its noun. The model must find out from the adjective which of the two
nouns that is. Pairs of nouns in the validation file do not occur in the training file.
"""

import itertools
import random
from pathlib import Path

ANIMALS = ("animal", "dog", "cat", "horse", "cow", "fox", "goat", "pig", "hen", "deer")
PLACES = ("street", "road", "river", "bridge", "field", "lake", "trail", "canal", "square", "track")
OF_ANIMALS = ("tired", "hungry", "scared", "lazy")
OF_PLACES = ("wide", "long", "wet", "busy")


def write(seed: int = 1) -> None:
    """Write pronouns.train.conll and pronouns.valid.conll to the current folder."""
    pairs = list(itertools.product(ANIMALS, PLACES))
    random.Random(seed).shuffle(pairs)  # noqa: S311
    pairs.remove((ANIMALS[0], PLACES[0]))
    held_out = [(ANIMALS[0], PLACES[0]), *pairs[:14]]  # the page shows a sentence that was not trained on
    for part, chosen in (("valid", held_out), ("train", pairs[14:])):
        sentences = [sentence for animal, place in chosen for sentence in make_sentences(animal, place)]
        Path(f"pronouns.{part}.conll").write_text("\n".join(sentences), encoding="utf-8")


def make_sentences(animal: str, place: str) -> list[str]:
    """Return one sentence per adjective, with a word and its tag per line."""
    sentences = []
    for adjective in (*OF_ANIMALS, *OF_PLACES):
        noun = animal if adjective in OF_ANIMALS else place
        words = f"The {animal} did not cross the {place} because it was too {adjective}".split()
        sentences.append("".join(f"{word}\t{noun if word == 'it' else 'O'}\n" for word in words))
    return sentences


if __name__ == "__main__":
    write()
