"""Byte pair encoding: pairs of symbols that tie, and how much a text shrinks with each merge."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from regard.config.tokenizers import BpeConfig
from regard.text.learn import learn
from regard.text.merges import count_words, replay_merges

WORD_COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
ONCE = dict.fromkeys(WORD_COUNTS, 1)  # the lecture's text has each word once
VOCABULARY = 1000  # more than these texts can fill: learning ends when every word is one symbol


@dataclass(frozen=True)
class Segmentation:
    """The words of a text as symbols, after some merges."""

    left: str  # the last merge; empty before the first
    right: str
    count: int  # how often the text had its pair
    words: list[list[str]]
    repeats: list[int]  # how often each word occurs

    @property
    def merged(self) -> str:
        """The symbol that the last merge made."""
        return self.left + self.right

    @property
    def size(self) -> int:
        """The number of symbols of the text."""
        return sum(count * len(word) for word, count in zip(self.words, self.repeats, strict=True))

    @property
    def pairs(self) -> Counter[tuple[str, str]]:
        """How often each pair of neighbors occurs."""
        pairs = Counter[tuple[str, str]]()
        for word, count in zip(self.words, self.repeats, strict=True):
            for pair in pairwise(word):
                pairs[pair] += count
        return pairs


def make_text(counts: Mapping[str, int]) -> str:
    """Return a text with words so many times."""
    return " ".join(word for word, count in counts.items() for _ in range(count))


def segment(text: str) -> list[Segmentation]:
    """Return a text's segmentation into characters, and that after each merge."""
    tokenizer = learn([text], BpeConfig(vocabulary=VOCABULARY))
    counts = count_words(tokenizer, [text])
    repeats = list(counts.values())
    start = Segmentation("", "", 0, [list(word) for word in counts], repeats)
    merges = replay_merges(tokenizer, [text])
    return [start, *(Segmentation(step.left, step.right, step.count, step.words, repeats) for step in merges)]


def count_pairs(counts: Mapping[str, int]) -> Counter[str]:
    """Count the pairs of neighboring characters, before the first merge."""
    pairs = segment(make_text(counts))[0].pairs
    return Counter({left + right: count for (left, right), count in pairs.items()})


def list_merges(counts: Mapping[str, int]) -> list[tuple[str, int, int]]:
    """Return each merge, its count, and the number of symbols that the text has after it; the first is no merge."""
    return [(step.merged, step.count, step.size) for step in segment(make_text(counts))]


def count_merges(text: str, steps: int) -> dict[str, int | float]:
    """Return counts after some merges: of the last one, of pairs that tied with it, and of the text's symbols."""
    *before, last = segment(text)[: steps + 1]
    ties = list(before[-1].pairs.values()).count(last.count) if before else 0
    vocabulary = len({symbol for word in last.words for symbol in word})
    sizes = {"tokens": last.size, "vocabulary": vocabulary, "ratio": (len(text) + 1) / last.size}
    return {"count": last.count, "ties": ties, **sizes}


def show_ties() -> Iterator[str]:
    """The most frequent pair of "low lower newest widest" depends on the counts of the words."""
    for title, counts in (("each word once", ONCE), ("with counts", WORD_COUNTS)):
        pairs, (start, *merges) = count_pairs(counts), list_merges(counts)
        most = max(pairs.values())
        best = sorted(pair for pair, count in pairs.items() if count == most)
        yield f"{title}: {', '.join(f'{word} {count}' for word, count in counts.items())}"
        yield f"  most frequent pairs, {most} times: {', '.join(best)}"
        yield f"  merges: {', '.join(f'{merged} {count}' for merged, count, _ in merges[:6])}, ..."
        characters = start[2]
        needed = [f"{ratio:g}: {sum(characters / size < ratio for *_, size in merges) + 1}" for ratio in (1.25, 1.5)]
        yield f"  merges until {characters} characters shrink by a ratio of {', '.join(needed)}; of {len(merges)}"
    yield "The slide calls (e, s) the most frequent pair. In its text it is one of several; with the counts of"
    yield "Sennrich et al. (2016) es and st come first. ▁ marks the end of a word."
