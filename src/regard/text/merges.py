"""Learning, seen step by step: the merges of a vocabulary replayed on the text that it was learned from.

>>> from regard.config.run import Bpe
>>> from regard.text.learn import learn
>>> text = ["low lower newest widest"]
>>> for step in replay_merges(learn(text, Bpe(vocabulary=30)), text):
...     print(step.number, step.merged, step.count, *step.symbols_of_word[2])
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
    """One merge: what was joined, how often it stood in the text, and the words after it."""

    number: int
    left: str
    right: str
    count: int
    words: list[list[str]]  # each different word once, as it is cut now

    @property
    def merged(self) -> str:
        """The new piece."""
        return self.left + self.right


def count_words(tokenizer: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """The different words of a text as learning sees them, and how often each stands there."""
    normalizer, pre_tokenizer = tokenizer.backend.normalizer, tokenizer.backend.pre_tokenizer
    words: Counter[str] = Counter()
    for text in texts:
        normalized = normalizer.normalize_str(text) if normalizer else text
        words.update(word for word, _ in pre_tokenizer.pre_tokenize_str(normalized))
    return words


def replay_merges(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[Merge]:
    """The merges in the order in which they were learned from these texts."""
    if tokenizer.model["type"] != "BPE":
        raise RegardError("Only byte-pair encoding learns by merges.", fix="Use the kind bpe or byte_bpe.")
    counts = count_words(tokenizer, texts)
    symbols_of_word = {word: list(word) for word in counts}
    for number, (left, right) in enumerate(tokenizer.model["merges"], 1):
        count = sum(
            counts[word] * list(pairwise(symbols)).count((left, right)) for word, symbols in symbols_of_word.items()
        )
        for symbols in symbols_of_word.values():
            _apply_merge(symbols, left, right)
        yield Merge(number, left, right, count, [list(symbols) for symbols in symbols_of_word.values()])


def _apply_merge(symbols: list[str], left: str, right: str) -> None:
    position = 0
    while position < len(symbols) - 1:
        if symbols[position] == left and symbols[position + 1] == right:
            symbols[position : position + 2] = [left + right]
        position += 1
