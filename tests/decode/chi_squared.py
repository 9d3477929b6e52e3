"""Pearson's chi-squared test with critical values for p = 0.001."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

# by degrees of freedom, from 1; from a table of the distribution
CRITICAL_VALUES = (
    *(10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32, 26.12, 27.88, 29.59),
    *(31.26, 32.91, 34.53, 36.12, 37.70, 39.25, 40.79, 42.31, 43.82, 45.31),
    *(46.80, 48.27, 49.73, 51.18, 52.62, 54.05, 55.48, 56.89, 58.30, 59.70),
)


def critical_value(degrees_of_freedom: int) -> float:
    """Return the critical value for p = 0.001; beyond the table by the Wilson-Hilferty approximation."""
    if degrees_of_freedom <= len(CRITICAL_VALUES):
        return CRITICAL_VALUES[degrees_of_freedom - 1]
    variance = 2 / (9 * degrees_of_freedom)
    return degrees_of_freedom * (1 - variance + 3.0902 * variance**0.5) ** 3


def check_counts(counts: Mapping[T, int], expected: Mapping[T, float]) -> None:
    """Compare sample counts with expected counts; classes with fewer than 5 expected are pooled."""
    assert not {key for key, count in counts.items() if count and not expected.get(key)}, "sampled, but impossible"
    pairs = [(counts.get(key, 0), mean) for key, mean in expected.items()]
    classes = [(count, mean) for count, mean in pairs if mean >= 5]
    rare = [(count, mean) for count, mean in pairs if 0 < mean < 5]
    if rare:
        classes.append((sum(count for count, _ in rare), sum(mean for _, mean in rare)))
    total, expected_total = sum(count for count, _ in classes), sum(mean for _, mean in classes)
    assert abs(total - expected_total) < 1e-3 * expected_total, "sampled and expected totals differ"
    if len(classes) > 1:
        statistic = sum((count - mean) ** 2 / mean for count, mean in classes)
        assert statistic < critical_value(len(classes) - 1), f"chi-squared {statistic:.1f} of {len(classes)} classes"


def check_tokens(tokens: Sequence[int], probabilities: Sequence[float]) -> None:
    """Compare sampled tokens with their probabilities."""
    counts = {token: list(tokens).count(token) for token in set(tokens)}
    check_counts(counts, {token: p * len(tokens) for token, p in enumerate(probabilities)})
