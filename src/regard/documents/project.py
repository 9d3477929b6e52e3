"""Project the spans of a source onto its translation by word alignment.

A pair covers the run of target words with the most links into its source words, minus the links to other words, so one
wrong link does not stretch it over the sentence. Pairs are placed from the outside in, within their parents and next to
each other, so they always nest. A point stays between the words linked to its neighbors. A protected text is found in
the translation, or inserted like a point if it is missing. Without links, the order of the source is kept: word j of m
corresponds to word j * n / m of n.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise

from regard.documents.segment import Segment, SegmentBuilder, Span
from regard.measure.alignment import Links

_WORD = re.compile(r"\S+")
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
_NO_IDS: frozenset[int] = frozenset()
_PROTECTED_WEIGHT = 5.0  # of a protected text in a pair's score; a word weighs 1


@dataclass(frozen=True)
class Projection:
    """A translation with the spans of its source."""

    segment: Segment
    missing: tuple[int, ...] = ()
    """Ids of the protected texts that the translation did not contain; they were inserted."""


@dataclass(frozen=True)
class _Word:
    start: int
    end: int
    core_start: int  # without punctuation around it
    core_end: int


@dataclass
class _Node:
    """A span in the tree of its source, with its place in the target."""

    span: Span
    children: list["_Node"] = field(default_factory=list)
    words: AbstractSet[int] = frozenset()  # of the source
    first: int = 0  # the range of target words
    last: int = 0
    start: int = 0  # the range of target characters
    end: int = 0
    is_inserted: bool = False


def project(
    source: Segment,
    target: str,
    links: Links,
    *,
    from_start: AbstractSet[int] = _NO_IDS,
    to_end: AbstractSet[int] = _NO_IDS,
) -> Projection:
    """Place the spans of a source in its translation.

    Args:
        source: The source with its spans.
        target: The translation.
        links: Pairs (source word, target word), counted from 0; spaces separate words. Empty for the source's order.
        from_start: Ids of pairs that began in an earlier sentence: they begin at the start of the target.
        to_end: Ids of pairs that go on in the next sentence: they end at the end of the target.

    >>> source = Segment("the red house", (Span(4, 7, 0, "pair"),))
    >>> project(source, "la casa roja", frozenset({(0, 0), (1, 2), (2, 1)})).segment.spans
    (Span(start=8, end=12, id=0, kind='pair', depth=0),)
    """
    if target.split() == source.text.split():
        return Projection(source)
    if not source.spans:
        return Projection(Segment(target, (), source.location))
    return _Projector(source, target, links, from_start, to_end).run()


class _Projector:
    def __init__(
        self, source: Segment, target: str, links: Links, from_start: AbstractSet[int], to_end: AbstractSet[int]
    ) -> None:
        self.source, self.target, self.from_start, self.to_end = source, target, from_start, to_end
        self.source_words = _find_words(source.text)
        self.protected, self.missing = _find_protected(source, target)
        blocks = [(start, end) for start, end, _ in self.protected]
        self.words = _find_words(target, blocks)
        self.links = self._make_links(links)
        self.plain = _plain_links(len(self.source_words), len(self.words))
        self.links = self.links if any(self.links) else self.plain

    def run(self) -> Projection:
        root = _Node(Span(0, len(self.source.text), -1, "pair", -1))
        root.last, root.end = len(self.words), len(self.target)
        parents = [root]
        for span in self.source.spans:
            del parents[span.depth + 1 :]
            if span.kind != "protected" or span.id in self.missing:
                node = _Node(span, words=self._covered(span), is_inserted=span.kind == "protected")
                parents[-1].children.append(node)
                parents.append(node)
        root.words = frozenset(range(len(self.source_words)))
        self._place_pairs(root)
        self._place_points(root)
        builder = SegmentBuilder()
        self._write(builder, root)
        return Projection(builder.build(self.source.location), tuple(sorted(self.missing)))

    def _make_links(self, links: Links) -> list[frozenset[int]]:
        """Return the source words of each target word, by alignment, equal words and protected texts."""
        linked = [set[int]() for _ in self.words]
        word_of, number = list[int](), 0  # several words of the target may be in one protected text
        for match in _WORD.finditer(self.target):
            number += match.start() >= self.words[number].end
            word_of.append(number)
        for source, target in links:
            if source < len(self.source_words) and target < len(word_of):
                linked[word_of[target]].add(source)
        texts = [self.source.text[word.core_start : word.core_end] for word in self.source_words]
        counts, index = Counter(texts), {text: number for number, text in enumerate(texts)}
        for number, word in enumerate(self.words):
            text = self.target[word.core_start : word.core_end]
            if len(text) > 1 and counts[text] == 1:
                linked[number] = {index[text]}
        for start, end, span in self.protected:
            for number, word in enumerate(self.words):
                if word.start < end and start < word.end:
                    linked[number] = set(self._covered(span))
        return [frozenset(sources) for sources in linked]

    def _covered(self, span: Span) -> frozenset[int]:
        """Return the source words that a span covers in part; punctuation counts if it covers nothing else."""
        words = list(enumerate(self.source_words))
        cores = [n for n, word in words if word.core_start < span.end and span.start < word.core_end]
        return frozenset(cores or [n for n, word in words if word.start < span.end and span.start < word.end])

    # --- pairs

    def _place_pairs(self, parent: _Node) -> None:
        """Place the pairs inside a pair."""
        pairs = [child for child in parent.children if child.span.kind == "pair"]
        placed = list[_Node]()
        for node in sorted(pairs, key=lambda node: self._priority(node, parent)):
            gaps = _find_gaps(parent, placed)
            if node.span.id in self.to_end:
                gaps = gaps[-1:]
            elif node.span.id in self.from_start:
                gaps = gaps[:1]
            node.first, node.last = self._choose_range(node, parent, gaps)
            placed.append(node)
            placed.sort(key=lambda node: (node.first, node.last))
        for node in pairs:
            self._find_characters(node, parent)
            self._place_pairs(node)

    def _priority(self, node: _Node, parent: _Node) -> tuple[bool, float]:
        is_bound = node.span.id in self.from_start or node.span.id in self.to_end
        weights = self._weights(node, self.links)
        return not is_bound, -_best_run(weights, parent.first, parent.last)[0]

    def _choose_range(self, node: _Node, parent: _Node, gaps: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return the range of target words for a pair: in one of the gaps between its placed siblings."""
        from_start, to_end = node.span.id in self.from_start, node.span.id in self.to_end
        low, high = gaps[0][0], gaps[-1][1]
        if not node.words:
            place = low if from_start else high if to_end else self._choose_place(node.span, gaps)
            return (low if from_start else place), (high if to_end else place)
        if (from_start and to_end) or (node.words >= parent.words and len(gaps) == 1):
            return low, high
        for links in (self.links, self.plain):
            weights = self._weights(node, links)
            runs = [_best_run(weights, first, last, from_start, to_end) for first, last in gaps]
            score, first, last = max(runs)
            if score > 0:
                return first, last
        place = low if from_start else high if to_end else self._choose_place(node.span, gaps)
        if from_start or to_end:
            return place, place
        first, last = next(gap for gap in gaps if gap[0] <= place <= gap[1])
        place = max(first, min(place, last - 1))
        return place, min(place + 1, last)  # an empty link could not be clicked

    def _weights(self, node: _Node, links: Sequence[AbstractSet[int]]) -> list[float]:
        """Return the gain of including each target word in a pair."""
        weights = list[float]()
        for word, sources in zip(self.words, links, strict=True):
            gain = (bool(sources & node.words) - bool(sources - node.words)) if sources else -0.1
            if word.core_start == word.core_end:
                gain *= 0.2  # punctuation
            if any(start < word.end and word.start < end for start, end, _ in self.protected):
                gain *= _PROTECTED_WEIGHT
            weights.append(gain)
        return weights

    def _find_characters(self, node: _Node, parent: _Node) -> None:
        """Convert a range of words to characters: outer punctuation belongs to a pair if it does in the source."""
        if node.first == node.last:
            node.start = node.end = self._position(node.span, node.first)
        else:
            first, last = self.words[node.first], self.words[node.last - 1]
            source = [self.source_words[number] for number in sorted(node.words)]
            has_start = bool(source) and node.span.start <= source[0].start < source[0].core_start
            has_end = bool(source) and source[-1].core_end < source[-1].end <= node.span.end
            node.start = first.start if has_start or first.core_start == first.core_end else first.core_start
            node.end = last.end if has_end or last.core_start == last.core_end else last.core_end
        if node.span.id in self.from_start:
            node.start = parent.start
        if node.span.id in self.to_end:
            node.end = parent.end
        node.start = min(max(node.start, parent.start), parent.end)
        node.end = min(max(node.end, node.start), parent.end)

    # --- points

    def _place_points(self, parent: _Node) -> None:
        """Place points and inserted texts; inside a pair, but not inside the pairs next to them."""
        pairs = [child for child in parent.children if child.span.kind == "pair"]
        for node in parent.children:
            if node.span.kind == "pair":
                self._place_points(node)
                continue
            before = self.source.text[parent.span.start : node.span.start]
            after = self.source.text[node.span.end : parent.span.end]
            if not before.strip():
                node.start = parent.start
            elif not after.strip():
                node.start = parent.end
            else:
                node.start = self._position(node.span, self._choose_place(node.span, _find_gaps(parent, pairs)))
            node.start = min(max(node.start, parent.start), parent.end)
            for pair in pairs:  # where punctuation was cut off, a position between words may be inside a pair
                if pair.start < node.start < pair.end:
                    node.start = pair.start if node.start - pair.start < pair.end - node.start else pair.end
            node.end = node.start

    def _choose_place(self, span: Span, gaps: Sequence[tuple[int, int]]) -> int:
        """Return the boundary between target words that separates the fewest links; neighbors count most."""
        split = sum(word.start < span.start for word in self.source_words)
        share = split / max(1, len(self.source_words)) * len(self.words)

        crossing = [0.0]  # by place, up to a constant: moving the boundary over a word adds or removes its links
        for sources in self.links:
            moved = sum(
                -(0.5 ** (split - source)) if source < split else 0.5 ** (source - split + 1) for source in sources
            )
            crossing.append(crossing[-1] + moved)
        places = [place for first, last in gaps for place in range(first, last + 1)]
        attached = self._attached_places(span, split)
        places = [place for place in places if place in attached] or places
        return min(places, key=lambda place: (round(crossing[place], 9), abs(place - share)))

    def _attached_places(self, span: Span, split: int) -> set[int]:
        """Return the boundaries at the words linked to the word that markup touches: "word<br>" or "<img>word"."""
        text = self.source.text
        if text[span.start - 1 : span.start].strip():
            return {target + 1 for target, sources in enumerate(self.links) if split - 1 in sources}
        if text[span.end : span.end + 1].strip():
            return {target for target, sources in enumerate(self.links) if split in sources}
        return set()

    def _position(self, span: Span, place: int) -> int:
        """Return the character position of a boundary: at the word to which the markup is attached in the source."""
        text = self.source.text
        before = text[: span.start]
        is_left = bool(before) and not before[-1].isspace()
        if not self.words:
            return 0
        if place == 0 or (not is_left and place < len(self.words)):
            return self.words[min(place, len(self.words) - 1)].start
        word = self.words[place - 1]
        is_core = is_left and before[-1].isalnum() and word.core_end > word.core_start
        return word.core_end if is_core else word.end

    # --- output

    def _write(self, builder: SegmentBuilder, node: _Node) -> None:
        position = node.start
        for child in sorted(node.children, key=lambda child: (child.start, child.end)):
            self._write_text(builder, position, child.start)
            position = child.end
            if child.span.kind == "pair":
                builder.open(child.span.id)
                self._write(builder, child)
                builder.close()
                continue
            text = self.source.text[child.span.start : child.span.end]
            before, after = self.source.text[: child.span.start], self.source.text[child.span.end :]
            is_between = child.is_inserted or (before[-1:].isspace() and after[:1].isspace())
            if is_between and child.start > 0 and not self.target[child.start - 1].isspace():
                builder.text(" ")
            if child.is_inserted:
                builder.protect(text, child.span.id)
            else:
                builder.point(child.span.id)
            if is_between and self.target[child.start : child.start + 1].isalnum():
                builder.text(" ")
        self._write_text(builder, position, node.end)

    def _write_text(self, builder: SegmentBuilder, start: int, end: int) -> None:
        """Write a range of the target, with its protected texts."""
        for first, last, span in self.protected:
            if start <= first and last <= end:
                builder.text(self.target[start:first])
                builder.protect(self.target[first:last], span.id)
                start = last
        builder.text(self.target[start:end])


def _find_words(text: str, blocks: Sequence[tuple[int, int]] = ()) -> list[_Word]:
    """Return the words of a text; a block (a protected text) is not divided."""
    ranges = list[tuple[int, int]]()
    for match in _WORD.finditer(text):
        start, end = match.span()
        if ranges and any(first < ranges[-1][1] and start < last for first, last in blocks):
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    words = list[_Word]()
    for start, end in ranges:
        core = _CORE.search(text[start:end])
        low, high = (start, start) if core is None else (start + core.start(), start + core.end())
        for first, last in blocks:
            if start < last and first < end:
                low, high = (min(low, first), max(high, last)) if core is not None else (first, last)
        words.append(_Word(start, end, low, high))
    return words


def _find_protected(source: Segment, target: str) -> tuple[list[tuple[int, int, Span]], set[int]]:
    """Return where the target contains each protected text, and the ids of those that it does not contain."""
    found, missing = list[tuple[int, int, Span]](), set[int]()
    protected = [span for span in source.spans if span.kind == "protected"]
    for span in sorted(protected, key=lambda span: span.start - span.end):  # long ones first: {a}, then a
        text = source.text[span.start : span.end]
        for match in re.finditer(make_pattern(text), target) if text.strip() else ():
            if all(match.end() <= start or end <= match.start() for start, end, _ in found):
                found.append((*match.span(), span))
                break
        else:
            missing.add(span.id)
    return sorted(found), missing


def make_pattern(text: str) -> str:
    """Return a regular expression that finds a text as a whole word.

    >>> bool(re.search(make_pattern("5"), "25")), bool(re.search(make_pattern("%s"), "%s!"))
    (False, True)
    """
    before = r"(?<!\w)" if text[:1].isalnum() else ""
    after = r"(?!\w)" if text[-1:].isalnum() else ""
    return before + re.escape(text) + after


def _plain_links(source_words: int, target_words: int) -> list[frozenset[int]]:
    """Return the links of a translation in the same order as its source."""
    return [
        frozenset(
            [min(source_words - 1, (2 * number + 1) * source_words // (2 * target_words))] if source_words else []
        )
        for number in range(target_words)
    ]


def _find_gaps(parent: _Node, placed: Iterable[_Node]) -> list[tuple[int, int]]:
    """Return the ranges of words of a pair that are not in the pairs inside it."""
    ranges = sorted((node.first, node.last) for node in placed)
    edges = [parent.first, *(edge for place in ranges for edge in place), parent.last]
    return [(start, max(start, end)) for start, end in list(pairwise(edges))[::2]]


def _best_run(
    weights: Sequence[float], first: int, last: int, from_start: bool = False, to_end: bool = False
) -> tuple[float, int, int]:
    """Return the largest sum of a run of weights and its range; a bound run begins or ends with the interval."""
    best, start, total = (0.0, first, first), first, 0.0
    if to_end:
        best = (0.0, last, last)
        for number in range(last - 1, first - 1, -1):
            total += weights[number]
            best = max(best, (total, number, last), key=lambda run: run[0])
        return best
    for number in range(first, last):
        if total <= 0 and not from_start:
            start, total = number, 0.0
        total += weights[number]
        if total > best[0]:
            best = (total, start, number + 1)
    return best
