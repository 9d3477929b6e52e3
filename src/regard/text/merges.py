"""BPE learning step by step: replay the merges of a tokenizer on the text that it was learned from.

>>> from regard.config.tokenizers import BpeConfig
>>> from regard.text.learn import learn
>>> text = ["low lower newest widest"]
>>> for merge in replay_merges(learn(text, BpeConfig(vocabulary=30)), text):
...     print(merge.number, merge.merged, merge.count, *merge.words[2])
1 es 2 n e w es t ▁
2 lo 2 n e w es t ▁
3 t▁ 2 n e w es t▁
4 est▁ 2 n e w est▁
5 low 2 n e w est▁
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from regard.base.errors import RegardError
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Merge:
    """One merge: the merged pair, its count in the text, and the words after the merge."""

    number: int
    left: str
    right: str
    count: int
    words: list[list[str]]  # the symbols of each distinct word

    @property
    def merged(self) -> str:
        """The new symbol."""
        return self.left + self.right


def count_words(tokenizer: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """Count the distinct words of the texts after normalization and pre-tokenization."""
    normalizer, pre_tokenizer = tokenizer.backend.normalizer, tokenizer.backend.pre_tokenizer
    words: Counter[str] = Counter()
    for text in texts:
        normalized = normalizer.normalize_str(text) if normalizer else text
        words.update(word for word, _ in pre_tokenizer.pre_tokenize_str(normalized))
    return words


def replay_merges(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[Merge]:
    """Yield the merges in the order in which they were learned.

    Args:
        tokenizer: A BPE tokenizer.
        texts: The texts that it was learned from.
    """
    if tokenizer.model["type"] != "BPE":
        raise RegardError("Only BPE tokenizers have merges.", hint="Use the kind bpe or byte_bpe.")
    counts = count_words(tokenizer, texts)
    symbols_by_text = {word: list(word) for word in counts}
    for number, (left, right) in enumerate(tokenizer.model["merges"], 1):
        count = sum(
            counts[word] * list(pairwise(symbols)).count((left, right)) for word, symbols in symbols_by_text.items()
        )
        for symbols in symbols_by_text.values():
            _apply_merge(symbols, left, right)
        yield Merge(number, left, right, count, [list(symbols) for symbols in symbols_by_text.values()])


def _apply_merge(symbols: list[str], left: str, right: str) -> None:
    position = 0
    while position < len(symbols) - 1:
        if symbols[position] == left and symbols[position + 1] == right:
            symbols[position : position + 2] = [left + right]
        position += 1
