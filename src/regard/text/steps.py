"""Learning, seen step by step: the merges of a vocabulary replayed on the text that it was learned from.

>>> from regard.config.run import Bpe
>>> from regard.text.learn import learn
>>> text = ["low lower newest widest"]
>>> for step in steps(learn(text, Bpe(vocabulary=30)), text):
...     print(step.number, step.made, step.count, *step.words[2])
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
class Step:
    """One merge: what was joined, how often it stood in the text, and the words after it."""

    number: int
    left: str
    right: str
    count: int
    words: list[list[str]]  # each different word once, as it is cut now

    @property
    def made(self) -> str:
        """The new piece."""
        return self.left + self.right


def count_words(tokenizer: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """The different words of a text as learning sees them, and how often each stands there."""
    normaliser, cutter = tokenizer.core.normalizer, tokenizer.core.pre_tokenizer
    words: Counter[str] = Counter()
    for text in texts:
        normal = normaliser.normalize_str(text) if normaliser else text
        words.update(word for word, _ in cutter.pre_tokenize_str(normal))
    return words


def steps(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[Step]:
    """The merges in the order in which they were learned from these texts."""
    if tokenizer.model["type"] != "BPE":
        raise RegardError("Only byte-pair encoding learns by merges.", fix="Use the kind bpe or byte_bpe.")
    counts = count_words(tokenizer, texts)
    words = {word: list(word) for word in counts}
    for number, (left, right) in enumerate(tokenizer.model["merges"], 1):
        count = sum(counts[word] * list(pairwise(cut)).count((left, right)) for word, cut in words.items())
        for cut in words.values():
            _merge(cut, left, right)
        yield Step(number, left, right, count, [list(cut) for cut in words.values()])


def _merge(pieces: list[str], left: str, right: str) -> None:
    place = 0
    while place < len(pieces) - 1:
        if pieces[place] == left and pieces[place + 1] == right:
            pieces[place : place + 2] = [left + right]
        place += 1
