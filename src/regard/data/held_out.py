"""Split one corpus into a training part and a held-out validation part.

A hash of the source text decides which part an example belongs to. A sentence that occurs twice is therefore never in
both parts, and the choice stays the same when the corpus grows. For running text, the end is held out, cut at a line
break; with many short documents, whole documents are held out.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from regard.config.sources import DocumentsConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example, Location

CUT_DOCUMENTS = 50  # this many first documents of a source are always cut: even a tiny corpus has a held-out part
MIN_HELD_OUT_CHARACTERS = 100  # later documents are cut only if more than this is held out, else held out whole or not


class SplitCorpus(Corpus):
    """The held-out examples of a corpus, or all remaining ones."""

    def __init__(self, corpus: Corpus, share: float, seed: int, *, held_out: bool) -> None:
        super().__init__(corpus.sources)
        self._corpus, self._share, self._seed, self._held_out = corpus, share, seed, held_out

    def examples(self, defects: Defects) -> Iterator[tuple[int, Example]]:
        """Yield every example of this part once, with the index of its source."""
        for held_out, index, example in split_examples(self._corpus, self._share, self._seed, defects):
            if held_out == self._held_out:
                yield index, example


def train_validation_split(corpus: Corpus, share: float, seed: int) -> tuple[SplitCorpus, SplitCorpus]:
    """Return the training part and the held-out part; each reads the files separately."""
    return SplitCorpus(corpus, share, seed, held_out=False), SplitCorpus(corpus, share, seed, held_out=True)


def split_examples(corpus: Corpus, share: float, seed: int, defects: Defects) -> Iterator[tuple[bool, int, Example]]:
    """Read a corpus once and yield (is held out, index of the source, example) for both parts."""
    for index, group in groupby(corpus.examples(defects), key=itemgetter(0)):
        has_documents = isinstance(corpus.sources[index], DocumentsConfig)
        for number, (_, example) in enumerate(group):
            if has_documents and (number < CUT_DOCUMENTS or share * len(example.source) > MIN_HELD_OUT_CHARACTERS):
                cut = find_end_cut(example.source, share)
                if cut:
                    yield False, index, replace(example, source=example.source[:cut])
                if cut < len(example.source):
                    line = example.location.line + example.source.count("\n", 0, cut)
                    location = Location(example.location.file, line)
                    yield True, index, replace(example, location=location, source=example.source[cut:])
            else:
                yield is_held_out(example.content, share, seed), index, example


def is_held_out(content: str | bytes, share: float, seed: int) -> bool:
    """Return whether an example belongs to the held-out share, which depends only on its content and the seed.

    >>> sum(is_held_out(f"sentence {n}", 0.1, seed=1) for n in range(1000))
    114
    """
    content = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(content, digest_size=8, key=str(seed).encode()).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def find_end_cut(text: str, share: float) -> int:
    r"""Return where the held-out end of a text begins: after the last line break before it, or else after a space.

    A line may be a whole paragraph: a break is used only if it holds out at most twice the share.

    >>> find_end_cut("one\ntwo\nthree\nfour\n", 0.3)
    8
    >>> find_end_cut("one two three four", 0.3), find_end_cut("onetwothreefour", 0.3)
    (8, 10)
    """
    cut = round(len(text) * (1 - share))
    ends = (text.rfind(space, 0, cut) + 1 for space in "\n ")
    min_cut = len(text) * (1 - 2 * share)
    return next((end for end in ends if end and end >= min_cut), cut)  # without a break near, cut inside a word
