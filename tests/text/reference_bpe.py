"""Byte-pair encoding as in the lectures, written for reading; Regard itself uses `tokenizers`.

1. Start from single characters and a mark for the end of a word.
2. Count all adjacent pairs in the text.
3. Merge the most frequent pair into a new symbol. Ties go to the pair whose left symbol is oldest, then whose right
   symbol is; characters are ordered by code point and older than merged symbols.
4. Repeat.
"""

from collections import Counter
from itertools import pairwise
from random import Random

Pair = tuple[str, str]


def learn_merges(words: dict[str, int], alphabet: list[str], max_merges: int, min_count: int = 2) -> list[Pair]:
    """Learn the merges from word counts."""
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
    """Merge every occurrence of the pair, from the left."""
    position = 0
    while position < len(symbols) - 1:
        if (symbols[position], symbols[position + 1]) == pair:
            symbols[position : position + 2] = ["".join(pair)]
        position += 1


def segment_with_dropout(word: str, merges: list[Pair], dropout: float, rng: Random) -> list[str]:
    """Algorithm 1 of Provilkov et al. (2020), line by line."""
    symbols = list(word)
    while True:
        candidates = [
            (merges.index(pair), position)
            for position, pair in enumerate(pairwise(symbols))
            if pair in merges and rng.random() >= dropout
        ]
        if not candidates:
            return symbols
        _, position = min(candidates)
        symbols[position : position + 2] = [symbols[position] + symbols[position + 1]]
