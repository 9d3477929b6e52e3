"""Which word belongs to which: alignments held against what people marked (Och and Ney 2003).

People mark links as sure or as merely possible. A sure link is possible, too. With A the links that were found:

    precision = |A and possible| / |A|        recall = |A and sure| / |sure|
    error rate = 1 - (|A and sure| + |A and possible|) / (|A| + |sure|)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError

Links = frozenset[tuple[int, int]]  # (source word, target word), counted from 0


@dataclass(frozen=True)
class Gold:
    """The links of one pair of sentences."""

    sure: Links
    possible: Links
    """Sure ones among them."""

    def transposed(self) -> "Gold":
        """The same with source and target exchanged."""
        return Gold(transposed(self.sure), transposed(self.possible))

    def links_outside(self, source_length: int, target_length: int) -> Links:
        """Links beyond sentences of so many words: a fault of the file."""
        return frozenset((i, j) for i, j in self.possible if i >= source_length or j >= target_length)

    def without(self, links: Links) -> "Gold":
        """All but these links."""
        return Gold(self.sure - links, self.possible - links)


@dataclass(frozen=True)
class AlignmentScore:
    """All in percent, over all sentences together."""

    error_rate: float
    precision: float
    recall: float
    predicted: int
    sure: int
    possible: int


def read_gold(line: str, index_base: int = 0) -> Gold:
    """A line such as "0-0 1p2": i-j is sure, ipj possible; `first` is the number that the file gives the first word.

    >>> gold = read_gold("1-1 2p1", index_base=1)
    >>> sorted(gold.sure), sorted(gold.possible)
    ([(0, 0)], [(0, 0), (1, 0)])
    """
    sure, possible = set(), set()
    for text in line.split():
        parts = text.split("p" if "p" in text else "-")
        if len(parts) != 2 or not all(part.isdecimal() and int(part) >= index_base for part in parts):
            raise RegardError(
                f"'{text}' is no link.", fix=f"Links are i-j (sure) or ipj (possible), from {index_base} on."
            )
        link = (int(parts[0]) - index_base, int(parts[1]) - index_base)
        possible.add(link)
        if "p" not in text:
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def alignment_error(predicted: Sequence[Links], gold: Sequence[Gold]) -> AlignmentScore:
    """The alignment error rate, the lower the better.

    >>> alignment_error([frozenset({(0, 0), (1, 1)})], [read_gold("0-0 1p1 2-2")]).error_rate
    25.0
    """
    if len(predicted) != len(gold):
        raise RegardError(
            f"{len(predicted)} alignments cannot be compared with {len(gold)} of gold.", fix="Give one for each."
        )
    predicted_count = sum(len(alignment) for alignment in predicted)
    sure, possible = sum(len(alignment.sure) for alignment in gold), sum(len(alignment.possible) for alignment in gold)
    if not predicted_count + sure:
        raise RegardError("There are no links to compare.", fix="Give sentences with links.")
    sure_hits = sum(len(alignment & reference.sure) for alignment, reference in zip(predicted, gold, strict=True))
    possible_hits = sum(
        len(alignment & reference.possible) for alignment, reference in zip(predicted, gold, strict=True)
    )
    return AlignmentScore(
        error_rate=100.0 * (1 - (sure_hits + possible_hits) / (predicted_count + sure)),
        precision=100.0 * possible_hits / max(predicted_count, 1),
        recall=100.0 * sure_hits / max(sure, 1),
        predicted=predicted_count,
        sure=sure,
        possible=possible,
    )


def transposed(links: Links) -> Links:
    """Links with source and target exchanged."""
    return frozenset((j, i) for i, j in links)
