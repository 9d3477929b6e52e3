"""One corpus, two parts: what is learned from, and what is held out to see whether it was learned.

Examples are held out by what their source says, so that a sentence that comes twice is never on both sides, and the
choice stays the same when the corpus grows. Of running text the end is held out, cut at a line.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from regard.config.run import AnySource, Documents
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example, Where


class Part(Corpus):
    """The held-out examples of a corpus, or all others."""

    def __init__(self, corpus: Corpus, share: float, seed: int, *, held_out: bool) -> None:
        super().__init__(corpus.sources)
        self._share, self._seed, self._held_out = share, seed, held_out

    def examples(self, defects: Defects) -> Iterator[tuple[int, Example]]:
        """Every example of this part once, with the index of its source."""
        for index, example in super().examples(defects):
            if _is_running(self.sources[index]):
                if (piece := self._piece(example)) is not None:
                    yield index, piece
            elif is_held_out(example.source, self._share, self._seed) == self._held_out:
                yield index, example

    def _piece(self, example: Example) -> Example | None:
        cut = end_cut(example.source, self._share)
        if self._held_out:
            line = example.where.line + example.source.count("\n", 0, cut)
            where = Where(example.where.file, line)
            return replace(example, where=where, source=example.source[cut:]) if cut < len(example.source) else None
        return replace(example, source=example.source[:cut]) if cut else None


def split(corpus: Corpus, share: float, seed: int) -> tuple[Part, Part]:
    """The part to learn from, and the part that is held out."""
    return Part(corpus, share, seed, held_out=False), Part(corpus, share, seed, held_out=True)


def is_held_out(source: str, share: float, seed: int) -> bool:
    """Whether this text belongs to the held-out share: a function of the text and the seed alone.

    >>> sum(is_held_out(f"sentence {n}", 0.1, seed=1) for n in range(1000))
    114
    """
    digest = hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8, key=str(seed).encode()).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def end_cut(text: str, share: float) -> int:
    r"""Where the held-out end of a text begins: after the line break before the last `share` of it.

    >>> end_cut("one\ntwo\nthree\nfour\n", 0.3)
    8
    """
    wanted = round(len(text) * (1 - share))
    line = text.rfind("\n", 0, wanted) + 1
    return line if line > wanted / 2 else wanted  # one endless line is cut where it must be


def _is_running(source: AnySource) -> bool:
    return isinstance(source, Documents)
