"""Retrieval accuracy: the fraction of texts whose most similar text is their partner."""

import numpy as np
from numpy.typing import NDArray

CHUNK = 1024  # rows of similarities in memory at a time
TOLERANCE = 1e-6  # of cosines: equal texts in different batches have vectors that differ by rounding


def retrieval_at_1(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Return the fraction of texts whose nearest text on the other side is their partner, over both directions.

    Ties count as correct, because equal texts have equal vectors.

    Args:
        first: Vectors (N, D), not necessarily normalized; row n pairs with row n of `second`.
        second: Vectors (N, D).

    >>> retrieval_at_1(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)[[0, 2, 1]])
    0.3333333333333333
    """
    first, second = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12) for vectors in (first, second)
    )
    partners = (first * second).sum(axis=1)  # (N)
    correct = 0
    for queries, texts in ((first, second), (second, first)):
        for start in range(0, len(queries), CHUNK):
            nearest = (queries[start : start + CHUNK] @ texts.T).max(axis=1)
            correct += int((partners[start : start + CHUNK] >= nearest - TOLERANCE).sum())
    return correct / max(2 * len(first), 1)
