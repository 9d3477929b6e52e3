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

    def turned(self) -> "Gold":
        """The same with source and target exchanged."""
        return Gold(turned(self.sure), turned(self.possible))

    def outside(self, source: int, target: int) -> Links:
        """Links beyond sentences of so many words: a fault of the file."""
        return frozenset((i, j) for i, j in self.possible if i >= source or j >= target)

    def without(self, links: Links) -> "Gold":
        """All but these links."""
        return Gold(self.sure - links, self.possible - links)


@dataclass(frozen=True)
class AlignmentScore:
    """All in percent, over all sentences together."""

    error_rate: float
    precision: float
    recall: float
    found: int
    sure: int
    possible: int


def read_gold(line: str, first: int = 0) -> Gold:
    """A line such as "0-0 1p2": i-j is sure, ipj possible; `first` is the number that the file gives the first word.

    >>> gold = read_gold("1-1 2p1", first=1)
    >>> sorted(gold.sure), sorted(gold.possible)
    ([(0, 0)], [(0, 0), (1, 0)])
    """
    sure, possible = set(), set()
    for word in line.split():
        parts = word.split("p" if "p" in word else "-")
        if len(parts) != 2 or not all(part.isdecimal() and int(part) >= first for part in parts):
            raise RegardError(f"'{word}' is no link.", fix=f"Links are i-j (sure) or ipj (possible), from {first} on.")
        link = (int(parts[0]) - first, int(parts[1]) - first)
        possible.add(link)
        if "p" not in word:
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def alignment_error(found: Sequence[Links], gold: Sequence[Gold]) -> AlignmentScore:
    """The alignment error rate, the lower the better.

    >>> alignment_error([frozenset({(0, 0), (1, 1)})], [read_gold("0-0 1p1 2-2")]).error_rate
    25.0
    """
    if len(found) != len(gold):
        raise RegardError(
            f"{len(found)} alignments cannot be compared with {len(gold)} of gold.", fix="Give one for each."
        )
    links = sum(len(one) for one in found)
    sure, possible = sum(len(one.sure) for one in gold), sum(len(one.possible) for one in gold)
    if not links + sure:
        raise RegardError("There are no links to compare.", fix="Give sentences with links.")
    surely = sum(len(one & right.sure) for one, right in zip(found, gold, strict=True))
    possibly = sum(len(one & right.possible) for one, right in zip(found, gold, strict=True))
    return AlignmentScore(
        error_rate=100.0 * (1 - (surely + possibly) / (links + sure)),
        precision=100.0 * possibly / max(links, 1),
        recall=100.0 * surely / max(sure, 1),
        found=links,
        sure=sure,
        possible=possible,
    )


def turned(links: Links) -> Links:
    """Links with source and target exchanged."""
    return frozenset((j, i) for i, j in links)
