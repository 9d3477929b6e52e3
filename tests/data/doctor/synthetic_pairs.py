"""Synthetic sentence pairs that look like real ones: frequent and rare words, varying lengths, final punctuation."""

import random
from itertools import accumulate

Pair = tuple[str, str]
_LETTERS = {"source": ("bcdfghklmnprstvw", "aeiou"), "target": ("bcdfghjklmnprstwxz", "aeiouäöü")}


def make_pairs(count: int, seed: int = 1) -> list[Pair]:
    """Return pairs of 4 to 24 words. Target words are a fixed translation of source words, in another order."""
    rng = random.Random(seed)
    vocabulary = [(_make_word(rng, "source", rank), _make_word(rng, "target", rank)) for rank in range(1500)]
    weights = list(accumulate(1 / (rank + 5) for rank in range(len(vocabulary))))
    pairs = []
    for _ in range(count):
        chosen = rng.choices(vocabulary, cum_weights=weights, k=rng.randint(4, 24))
        while chosen[-1] in vocabulary[:50]:  # sentences end with a rarer word
            chosen[-1] = rng.choice(vocabulary)
        target = [*chosen[:2], *reversed(chosen[2:-1]), chosen[-1]]
        end = rng.choice("....!?") if rng.random() < 0.97 else ""
        pairs.append((f"{' '.join(word[0] for word in chosen)}{end}", f"{' '.join(word[1] for word in target)}{end}"))
    return pairs


def _make_word(rng: random.Random, side: str, rank: int) -> str:
    consonants, vowels = _LETTERS[side]
    syllables = 1 if rank < 30 else rng.randint(1, 4)
    return "".join(rng.choice(consonants) + rng.choice(vowels) for _ in range(syllables)) + rng.choice(consonants)
