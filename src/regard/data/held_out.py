"""One corpus, two parts: what is learned from, and what is held out to see whether it was learned.

Examples are held out by what their source says, so that a sentence that comes twice is never on both sides, and the
choice stays the same when the corpus grows. Of running text the end is held out, cut at a line; of many short documents
whole ones, as examples are.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from regard.config.run import AnySource, Documents
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example, Location

CUT_DOCUMENTS = 50  # documents of which each is cut, so that something is held out of the smallest corpus
MIN_HELD_OUT_CHARACTERS = 100  # characters: after those few, a document stays whole of which less would be held out


class SplitCorpus(Corpus):
    """The held-out examples of a corpus, or all others."""

    def __init__(self, corpus: Corpus, share: float, seed: int, *, held_out: bool) -> None:
        super().__init__(corpus.sources)
        self._share, self._seed, self._held_out = share, seed, held_out

    def examples(self, defects: Defects) -> Iterator[tuple[int, Example]]:
        """Every example of this part once, with the index of its source."""
        for index, group in groupby(super().examples(defects), key=itemgetter(0)):
            is_running = _is_running_text(self.sources[index])
            for number, (_, example) in enumerate(group):
                if is_running and (
                    number < CUT_DOCUMENTS or self._share * len(example.source) > MIN_HELD_OUT_CHARACTERS
                ):
                    if (part := self._split_document(example)) is not None:
                        yield index, part
                elif is_held_out(example.source, self._share, self._seed) == self._held_out:
                    yield index, example

    def _split_document(self, example: Example) -> Example | None:
        cut = find_end_cut(example.source, self._share)
        if self._held_out:
            line = example.where.line + example.source.count("\n", 0, cut)
            where = Location(example.where.file, line)
            return replace(example, where=where, source=example.source[cut:]) if cut < len(example.source) else None
        return replace(example, source=example.source[:cut]) if cut else None


def train_validation_split(corpus: Corpus, share: float, seed: int) -> tuple[SplitCorpus, SplitCorpus]:
    """The part to learn from, and the part that is held out."""
    return SplitCorpus(corpus, share, seed, held_out=False), SplitCorpus(corpus, share, seed, held_out=True)


def is_held_out(source: str, share: float, seed: int) -> bool:
    """Whether this text belongs to the held-out share: a function of the text and the seed alone.

    >>> sum(is_held_out(f"sentence {n}", 0.1, seed=1) for n in range(1000))
    114
    """
    digest = hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8, key=str(seed).encode()).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def find_end_cut(text: str, share: float) -> int:
    r"""Where the held-out end of a text begins: after the line break before the last `share` of it, or after a space.

    Never more than twice the share is held out: lines may be whole paragraphs.

    >>> find_end_cut("one\ntwo\nthree\nfour\n", 0.3), find_end_cut("one two three four", 0.3), find_end_cut("onetwothreefour", 0.3)
    (8, 8, 10)
    """
    cut = round(len(text) * (1 - share))
    ends = (text.rfind(space, 0, cut) + 1 for space in "\n ")
    min_cut = len(text) * (1 - 2 * share)
    return next((end for end in ends if end and end >= min_cut), cut)  # one endless word is cut where it must be


def _is_running_text(source: AnySource) -> bool:
    return isinstance(source, Documents)
