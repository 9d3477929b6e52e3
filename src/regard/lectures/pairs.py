"""Byte pair encoding: which pairs of symbols tie, and how much a text shrinks with each merge."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from regard.config.tokenizers import BpeConfig
from regard.lectures.worked_pages import MERGES_VOCABULARY, WORD_COUNTS
from regard.text.learn import learn
from regard.text.merges import count_words, replay_merges

ONCE = dict.fromkeys(WORD_COUNTS, 1)  # the lecture's text has each word once


def make_text(counts: Mapping[str, int]) -> list[str]:
    """Return a text with words so many times."""
    return [" ".join(word for word, count in counts.items() for _ in range(count))]


def count_pairs(counts: Mapping[str, int]) -> Counter[str]:
    """Count the pairs of neighboring characters, before the first merge."""
    text = make_text(counts)
    words = count_words(learn(text, BpeConfig(vocabulary=MERGES_VOCABULARY)), text)
    pairs: Counter[str] = Counter()
    for word, count in words.items():
        for left, right in pairwise(word):
            pairs[left + right] += count
    return pairs


def list_merges(counts: Mapping[str, int]) -> list[tuple[str, int, int]]:
    """Return each merge, its count, and the number of symbols that the text has after it; the first is no merge."""
    text = make_text(counts)
    tokenizer = learn(text, BpeConfig(vocabulary=MERGES_VOCABULARY))
    repeats = count_words(tokenizer, text)

    def measure(words: Sequence[Sequence[str]]) -> int:
        return sum(count * len(word) for word, count in zip(words, repeats.values(), strict=True))

    merges = [(merge.merged, merge.count, measure(merge.words)) for merge in replay_merges(tokenizer, text)]
    return [("", 0, measure([list(word) for word in repeats])), *merges]


def show_pairs() -> Iterator[str]:
    """Pairs of "low lower newest widest" and their ties, and the text after each merge."""
    for name, counts in (("each word once", ONCE), ("low 5, lower 2, newest 6, widest 3", WORD_COUNTS)):
        yield f"{name}: " + ", ".join(f"{pair} {count}" for pair, count in count_pairs(counts).most_common(8))
        for merged, count, size in list_merges(counts)[:8]:
            yield f"  {f'merge {merged} ({count})' if merged else 'characters':16} {size:3} symbols"


SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {"pairs": show_pairs}
