"""Word alignment scored against human annotation (Och and Ney 2003).

Annotators mark links as sure or as possible. Every sure link is also possible. With A the predicted links:

    precision = |A and possible| / |A|        recall = |A and sure| / |sure|
    error rate = 1 - (|A and sure| + |A and possible|) / (|A| + |sure|)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError

Links = frozenset[tuple[int, int]]  # (source word, target word), counted from 0


@dataclass(frozen=True)
class Gold:
    """The annotated links of one sentence pair."""

    sure: Links
    possible: Links
    """Includes the sure links."""

    def transposed(self) -> "Gold":
        """Return the links with source and target exchanged."""
        return Gold(transpose(self.sure), transpose(self.possible))

    def links_outside(self, source_length: int, target_length: int) -> Links:
        """Return the invalid links, which point outside sentences of these lengths."""
        return frozenset((i, j) for i, j in self.possible if i >= source_length or j >= target_length)

    def without(self, links: Links) -> "Gold":
        """Return the annotation without these links."""
        return Gold(self.sure - links, self.possible - links)


@dataclass(frozen=True)
class AlignmentScore:
    """Error rate, precision and recall of a corpus in percent, and the numbers of links."""

    error_rate: float
    precision: float
    recall: float
    predicted: int
    sure: int
    possible: int


def read_gold(line: str, index_base: int = 0) -> Gold:
    """Parse a line such as "0-0 1p2": i-j is a sure link, ipj a possible one.

    Args:
        line: The links of one sentence pair.
        index_base: Index of the first word in the file, 0 or 1.

    >>> gold = read_gold("1-1 2p1", index_base=1)
    >>> sorted(gold.sure), sorted(gold.possible)
    ([(0, 0)], [(0, 0), (1, 0)])
    """
    sure, possible = set(), set()
    for text in line.split():
        parts = text.split("p" if "p" in text else "-")
        if len(parts) != 2 or not all(part.isdecimal() and int(part) >= index_base for part in parts):
            raise RegardError(
                f"'{text}' is not a link.", hint=f"Write i-j (sure) or ipj (possible), counted from {index_base}."
            )
        link = (int(parts[0]) - index_base, int(parts[1]) - index_base)
        possible.add(link)
        if "p" not in text:
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def alignment_error(predicted: Sequence[Links], gold: Sequence[Gold]) -> AlignmentScore:
    """Compute the alignment error rate (AER); lower is better.

    >>> alignment_error([frozenset({(0, 0), (1, 1)})], [read_gold("0-0 1p1 2-2")]).error_rate
    25.0
    """
    if len(predicted) != len(gold):
        raise RegardError(
            f"The number of alignments ({len(predicted)}) differs from the number of annotated pairs ({len(gold)}).",
            hint="Pass one prediction per annotated sentence pair.",
        )
    predicted_count = sum(len(alignment) for alignment in predicted)
    sure, possible = sum(len(alignment.sure) for alignment in gold), sum(len(alignment.possible) for alignment in gold)
    if not predicted_count + sure:
        raise RegardError("There are no links to compare.", hint="Pass sentences with links.")
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


def transpose(links: Links) -> Links:
    """Exchange source and target of every link."""
    return frozenset((j, i) for i, j in links)
