"""Where a system is good and where it is bad: scores by the length of the source and by how rare words are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.measure.bleu_chrf import bleu, chrf
from regard.measure.exact import exact_match
from regard.measure.score import References, check_pairs, reference_lists

LENGTH_EDGES = (1, 6, 11, 21, 31, 51)
FREQUENCY_EDGES = (0, 1, 10, 100, 1000)


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
    correct: int
    """Written words that the reference of the same text has, each occurrence once."""
    f1: float
    """The harmonic mean of precision (right / written) and recall (right / wanted), in percent."""


def score_by_length(
    hypotheses: Sequence[str], references: References, sources: Sequence[str], edges: Sequence[int] = LENGTH_EDGES
) -> list[LengthBucket]:
    """Scores of short and of long sources, counted in words; `edges` are the shortest lengths of the buckets.

    Buckets without texts are left out.

    >>> found = score_by_length(["a", "b c"], ["a", "b d"], ["A", "B C D E F G"])
    >>> [(bucket.low, bucket.high, bucket.texts, bucket.exact_match) for bucket in found]
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
    """How well rare and frequent words are written; `counts` is what `count_words` found in the training text.

    With several references, the first counts. Words are cut as BLEU cuts them. Buckets without words are left out.

    >>> found = score_by_frequency(["the cat sat"], ["the dog sat"], count_words(["the cat sat", "the mat"]))
    >>> [(bucket.low, bucket.references, bucket.hypotheses, bucket.correct) for bucket in found]
    [(0, 1, 0, 0), (1, 2, 3, 2)]
    """
    check_pairs(hypotheses, references)
    in_references, in_hypotheses, correct = Counter[int](), Counter[int](), Counter[int]()
    for text, candidates in zip(hypotheses, reference_lists(references), strict=True):
        hypothesis_words, reference_words = count_words([text]), count_words([candidates[0]])
        for counter, words in (
            (in_hypotheses, hypothesis_words),
            (in_references, reference_words),
            (correct, hypothesis_words & reference_words),
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
    """How often each word occurs, cut as BLEU cuts (13a: punctuation is a word of its own)."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    tokenize = Tokenizer13a()
    return Counter(word for line in lines for word in tokenize(line).split())


def _find_bucket(value: int, edges: Sequence[int]) -> int:
    """The number of the bucket: below the first edge belongs to the first."""
    if list(edges) != sorted(set(edges)) or not edges:
        raise RegardError(f"{list(edges)} are no edges of buckets.", fix="Give whole numbers that grow.")
    return max(sum(edge <= value for edge in edges) - 1, 0)


def _bucket_range(bucket: int, edges: Sequence[int]) -> tuple[int, int | None]:
    return edges[bucket], edges[bucket + 1] - 1 if bucket + 1 < len(edges) else None
