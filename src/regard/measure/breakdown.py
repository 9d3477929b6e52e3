"""Where a system is good and where it is bad: scores by the length of the source and by how rare words are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.measure.exact import exact_match
from regard.measure.overlap import bleu, chrf
from regard.measure.score import References, check_pairs, variants

LENGTHS = (1, 6, 11, 21, 31, 51)
FREQUENCIES = (0, 1, 10, 100, 1000)


@dataclass(frozen=True)
class LengthBucket:
    """The texts whose sources have `low` to `high` words (None: and more)."""

    low: int
    high: int | None
    texts: int
    bleu: float
    chrf: float
    exact_match: float


@dataclass(frozen=True)
class FrequencyBucket:
    """Words that the training text has `low` to `high` times (None: and more)."""

    low: int
    high: int | None
    references: int
    """Such words in the references."""
    hypotheses: int
    """Such words that were written."""
    right: int
    """Written words that the reference of the same text has, each occurrence once."""
    f1: float
    """The harmonic mean of precision (right / written) and recall (right / wanted), in percent."""


def by_length(
    hypotheses: Sequence[str], references: References, sources: Sequence[str], edges: Sequence[int] = LENGTHS
) -> list[LengthBucket]:
    """Scores of short and of long sources, counted in words; `edges` are the shortest lengths of the buckets.

    Buckets without texts are left out.

    >>> found = by_length(["a", "b c"], ["a", "b d"], ["A", "B C D E F G"])
    >>> [(bucket.low, bucket.high, bucket.texts, bucket.exact_match) for bucket in found]
    [(1, 5, 1, 100.0), (6, 10, 1, 0.0)]
    """
    check_pairs(hypotheses, references)
    check_pairs(sources, references)
    places: dict[int, list[int]] = {}
    for place, source in enumerate(sources):
        places.setdefault(_bucket(len(source.split()), edges), []).append(place)
    several = variants(references)
    found = []
    for number in sorted(places):
        texts = [hypotheses[place] for place in places[number]]
        wanted = [several[place] for place in places[number]]
        values = [measure(texts, wanted).value for measure in (bleu, chrf, exact_match)]
        found.append(LengthBucket(*_range(number, edges), len(texts), *values))
    return found


def by_frequency(
    hypotheses: Sequence[str], references: References, counts: Mapping[str, int], edges: Sequence[int] = FREQUENCIES
) -> list[FrequencyBucket]:
    """How well rare and frequent words are written; `counts` is what `count_words` found in the training text.

    With several references, the first counts. Words are cut as BLEU cuts them. Buckets without words are left out.

    >>> found = by_frequency(["the cat sat"], ["the dog sat"], count_words(["the cat sat", "the mat"]))
    >>> [(bucket.low, bucket.references, bucket.hypotheses, bucket.right) for bucket in found]
    [(0, 1, 0, 0), (1, 2, 3, 2)]
    """
    check_pairs(hypotheses, references)
    wanted, written, right = Counter[int](), Counter[int](), Counter[int]()
    for text, several in zip(hypotheses, variants(references), strict=True):
        ours, theirs = count_words([text]), count_words([several[0]])
        for total, words in ((written, ours), (wanted, theirs), (right, ours & theirs)):
            for word, times in words.items():
                total[_bucket(counts.get(word, 0), edges)] += times
    numbers = sorted(wanted.keys() | written.keys())
    return [
        FrequencyBucket(
            *_range(n, edges), wanted[n], written[n], right[n], f1=200.0 * right[n] / (wanted[n] + written[n])
        )
        for n in numbers
    ]


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs, cut as BLEU cuts (13a: punctuation is a word of its own)."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    cut = Tokenizer13a()
    return Counter(word for line in lines for word in cut(line).split())


def _bucket(value: int, edges: Sequence[int]) -> int:
    """The number of the bucket: below the first edge belongs to the first."""
    if list(edges) != sorted(set(edges)) or not edges:
        raise RegardError(f"{list(edges)} are no edges of buckets.", fix="Give whole numbers that grow.")
    return max(sum(edge <= value for edge in edges) - 1, 0)


def _range(number: int, edges: Sequence[int]) -> tuple[int, int | None]:
    return edges[number], edges[number + 1] - 1 if number + 1 < len(edges) else None
