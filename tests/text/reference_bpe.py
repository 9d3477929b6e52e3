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


def learn_merges(words: dict[str, int], alphabet: list[str], max_merges: int, min_count: int = 2) -> list[Pair]:
    """The merges of a text that is given as words and how often each stands in it."""
    age = {symbol: number for number, symbol in enumerate(alphabet)}
    symbols_of_word = {word: list(word) for word in words}
    merges: list[Pair] = []
    while len(merges) < max_merges:
        pairs: Counter[Pair] = Counter()
        for word, symbols in symbols_of_word.items():
            for pair in pairwise(symbols):
                pairs[pair] += words[word]
        best = min(pairs, key=lambda pair: (-pairs[pair], age[pair[0]], age[pair[1]]), default=None)
        if best is None or pairs[best] < min_count:
            break
        merges.append(best)
        age.setdefault("".join(best), len(age))
        for symbols in symbols_of_word.values():
            merge_all(symbols, best)
    return merges


def merge_all(symbols: list[str], pair: Pair) -> None:
    """Join the pair wherever it stands, from the left."""
    position = 0
    while position < len(symbols) - 1:
        if (symbols[position], symbols[position + 1]) == pair:
            symbols[position : position + 2] = ["".join(pair)]
        position += 1


def segment_with_dropout(word: str, merges: list[Pair], dropout: float, rng: Random) -> list[str]:
    """Algorithm 1 of Provilkov et al. (2020), line by line."""
    symbols = list(word)
    while True:
        possible = [
            (merges.index(pair), position)
            for position, pair in enumerate(pairwise(symbols))
            if pair in merges and rng.random() >= dropout
        ]
        if not possible:
            return symbols
        _, position = min(possible)
        symbols[position : position + 2] = [symbols[position] + symbols[position + 1]]
