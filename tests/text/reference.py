"""Byte-pair encoding as the lectures tell it, to be read; the product uses `tokenizers`.

1. Start from single characters and a mark for the end of a word.
2. Count all pairs of neighbours in the text.
3. Make the most frequent pair a new symbol. Of equally frequent ones, take the pair whose left symbol is oldest, then
   whose right symbol is; characters are as old as their code points are small.
4. Repeat.
"""

from collections import Counter
from itertools import pairwise
from random import Random

Pair = tuple[str, str]


def learn_merges(words: dict[str, int], alphabet: list[str], most: int, least: int = 2) -> list[Pair]:
    """The merges of a text that is given as words and how often each stands in it."""
    age = {symbol: number for number, symbol in enumerate(alphabet)}
    cuts = {word: list(word) for word in words}
    merges: list[Pair] = []
    while len(merges) < most:
        pairs: Counter[Pair] = Counter()
        for word, cut in cuts.items():
            for pair in pairwise(cut):
                pairs[pair] += words[word]
        best = min(pairs, key=lambda pair: (-pairs[pair], age[pair[0]], age[pair[1]]), default=None)
        if best is None or pairs[best] < least:
            break
        merges.append(best)
        age.setdefault("".join(best), len(age))
        for cut in cuts.values():
            merge_all(cut, best)
    return merges


def merge_all(cut: list[str], pair: Pair) -> None:
    """Join the pair wherever it stands, from the left."""
    place = 0
    while place < len(cut) - 1:
        if (cut[place], cut[place + 1]) == pair:
            cut[place : place + 2] = ["".join(pair)]
        place += 1


def cut_with_dropout(word: str, merges: list[Pair], rate: float, draw: Random) -> list[str]:
    """Algorithm 1 of Provilkov et al. (2020), line by line."""
    cut = list(word)
    while True:
        possible = [
            (merges.index(pair), place)
            for place, pair in enumerate(pairwise(cut))
            if pair in merges and draw.random() >= rate
        ]
        if not possible:
            return cut
        _, place = min(possible)
        cut[place : place + 2] = [cut[place] + cut[place + 1]]
