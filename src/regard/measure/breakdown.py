"""Scores by source length and by word frequency."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.measure.bleu_chrf import bleu, chrf, exact_match
from regard.measure.metric import References, check_pairs, reference_lists

LENGTH_EDGES = (1, 6, 11, 21, 31, 51)
FREQUENCY_EDGES = (0, 1, 10, 100, 1000)


@dataclass(frozen=True)
class LengthBucket:
    """Scores of the texts whose sources have `low` to `high` words (None: no upper limit)."""

    low: int
    high: int | None
    texts: int
    bleu: float
    chrf: float
    exact_match: float


@dataclass(frozen=True)
class FrequencyBucket:
    """Counts of the words that occur `low` to `high` times in the training text (None: no upper limit)."""

    low: int
    high: int | None
    references: int
    """Occurrences of such words in the references."""
    hypotheses: int
    """Occurrences of such words in the hypotheses."""
    correct: int
    """Occurrences in hypotheses that also occur in the reference of the same text."""
    f1: float
    """The harmonic mean of precision (correct / hypotheses) and recall (correct / references), in percent."""


def score_by_length(
    hypotheses: Sequence[str], references: References, sources: Sequence[str], edges: Sequence[int] = LENGTH_EDGES
) -> list[LengthBucket]:
    """Score texts by the length of their source in words.

    Args:
        hypotheses: The translations.
        references: One reference per text, or several.
        sources: The source texts.
        edges: The smallest length of each bucket.

    Returns:
        One bucket per range of lengths; empty buckets are left out.

    >>> buckets = score_by_length(["a", "b c"], ["a", "b d"], ["A", "B C D E F G"])
    >>> [(bucket.low, bucket.high, bucket.texts, bucket.exact_match) for bucket in buckets]
    [(1, 5, 1, 100.0), (6, 10, 1, 0.0)]
    """
    check_pairs(hypotheses, references)
    check_pairs(sources, references)
    indices: dict[int, list[int]] = {}
    for i, source in enumerate(sources):
        indices.setdefault(_find_bucket(len(source.split()), edges), []).append(i)
    lists = reference_lists(references)
    buckets = []
    for bucket in sorted(indices):
        texts = [hypotheses[i] for i in indices[bucket]]
        bucket_references = [lists[i] for i in indices[bucket]]
        values = [measure(texts, bucket_references).value for measure in (bleu, chrf, exact_match)]
        buckets.append(LengthBucket(*_bucket_range(bucket, edges), len(texts), *values))
    return buckets


def score_by_frequency(
    hypotheses: Sequence[str], references: References, counts: Mapping[str, int], edges: Sequence[int] = FREQUENCY_EDGES
) -> list[FrequencyBucket]:
    """Score words by their frequency in the training text.

    Args:
        hypotheses: The translations.
        references: One reference per text; of several, the first is used.
        counts: `count_words` of the training text.
        edges: The smallest frequency of each bucket.

    Returns:
        One bucket per range of frequencies; empty buckets are left out. Words are split with BLEU's tokenizer.

    >>> buckets = score_by_frequency(["the cat sat"], ["the dog sat"], count_words(["the cat sat", "the mat"]))
    >>> [(bucket.low, bucket.references, bucket.hypotheses, bucket.correct) for bucket in buckets]
    [(0, 1, 0, 0), (1, 2, 3, 2)]
    """
    check_pairs(hypotheses, references)
    in_references, in_hypotheses, correct = Counter[int](), Counter[int](), Counter[int]()
    for text, candidates in zip(hypotheses, reference_lists(references), strict=True):
        hypothesis_counts, reference_counts = count_words([text]), count_words([candidates[0]])
        for counter, words in (
            (in_hypotheses, hypothesis_counts),
            (in_references, reference_counts),
            (correct, hypothesis_counts & reference_counts),
        ):
            for word, count in words.items():
                counter[_find_bucket(counts.get(word, 0), edges)] += count
    buckets = sorted(in_references.keys() | in_hypotheses.keys())
    return [
        FrequencyBucket(
            *_bucket_range(n, edges),
            in_references[n],
            in_hypotheses[n],
            correct[n],
            f1=200.0 * correct[n] / (in_references[n] + in_hypotheses[n]),
        )
        for n in buckets
    ]


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Count words with BLEU's tokenizer (13a: punctuation marks are words)."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    tokenize = Tokenizer13a()
    return Counter(word for line in lines for word in tokenize(line).split())


def _find_bucket(value: int, edges: Sequence[int]) -> int:
    """Return the index of the bucket; values below the first edge belong to the first bucket."""
    if list(edges) != sorted(set(edges)) or not edges:
        raise RegardError(f"Bucket edges must be increasing, got {list(edges)}.", hint="Use increasing integers.")
    return max(sum(edge <= value for edge in edges) - 1, 0)


def _bucket_range(bucket: int, edges: Sequence[int]) -> tuple[int, int | None]:
    return edges[bucket], edges[bucket + 1] - 1 if bucket + 1 < len(edges) else None
