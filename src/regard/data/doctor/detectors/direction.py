"""Detect pairs of mixed direction: some translate from A to B, others from B to A.

Profiles of the two sides cannot show it: if half of the pairs are reversed, both sides hold the same mixture. But in
every pair the trigrams of A are on one side and the trigrams of B on the other. The first principal component of
(in the source only) - (in the target only) finds these two groups of trigrams, and its sign the direction of a pair.
In two languages the trigrams of a pair agree (their 10th percentile over real corpora is 0.63 to 0.99); in pairs of one
language, such as consecutive sentences, paraphrases or corrections, they do not (0.04 to 0.46), and the check reports
nothing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.detectors.ngrams import hash_ngrams, keep_letters, to_code_points

_MIN_PAIRS, _MAX_PAIRS = 100, 1000  # pairs that are needed, and used
_MAX_CHARACTERS = 150  # characters of a text that are used
_ORDER, _HASH_BITS = 3, 14
_MASK = (1 << _HASH_BITS) - 1
_FEATURES = 256  # trigrams that are used: those that most often occur on one side only
_MIN_AGREEMENT = 0.55


def find_reversed(sources: Sequence[str], targets: Sequence[str]) -> tuple[NDArray[np.int64], float] | None:
    """Find the pairs in the rarer direction.

    Returns:
        Their rows among the pairs that were used, and their share; None if there are too few pairs, or if the sides do
        not differ as two languages do.
    """
    rows = np.flatnonzero(
        [bool(source.strip() and target.strip()) for source, target in zip(sources, targets, strict=True)]
    )
    if len(rows) < _MIN_PAIRS:
        return None
    rows = rows[:: -(-len(rows) // _MAX_PAIRS)]
    in_source, in_target = (_list_trigrams([texts[row] for row in rows.tolist()]) for texts in (sources, targets))
    only_source, only_target = np.setdiff1d(in_source, in_target), np.setdiff1d(in_target, in_source)
    if 2 * (len(only_source) + len(only_target)) < len(in_source) + len(in_target):
        return None  # most trigrams are on both sides: one language, e.g. corrections
    counts = np.bincount(np.concatenate([only_source, only_target]) & _MASK, minlength=_MASK + 1)
    columns = np.full(_MASK + 1, -1)
    columns[np.argsort(-counts, kind="stable")[:_FEATURES]] = np.arange(_FEATURES)
    signs = np.zeros((len(rows), _FEATURES))
    for keys, sign in ((only_source, 1), (only_target, -1)):
        is_used = columns[keys & _MASK] >= 0
        signs[keys[is_used] >> _HASH_BITS, columns[keys[is_used] & _MASK]] = sign
    component = np.linalg.eigh(signs[::2].T @ signs[::2]).eigenvectors[:, -1]  # learned from half of the pairs
    weights = np.abs(signs) @ np.abs(component)
    is_clear = weights > np.median(weights) / 2
    agreement = signs @ component / np.maximum(weights, 1e-9)
    tested = np.abs(agreement[1::2][is_clear[1::2]])
    if not len(tested) or np.quantile(tested, 0.1) < _MIN_AGREEMENT:
        return None
    is_positive = agreement[is_clear] > 0
    is_rare = is_positive if is_positive.mean() < 0.5 else ~is_positive
    return rows[is_clear][is_rare], float(is_rare.mean())


def _list_trigrams(texts: Sequence[str]) -> NDArray[np.int64]:
    """The distinct trigrams of each text, as its row and a hash in one number."""
    code_points = to_code_points([text[:_MAX_CHARACTERS] for text in texts], _ORDER)
    hashes = hash_ngrams(keep_letters(code_points.codes), _ORDER) >> np.uint32(32 - _HASH_BITS)
    rows = np.repeat(np.arange(len(texts)), code_points.ends - code_points.starts)[: len(hashes)]
    return np.unique(rows << _HASH_BITS | hashes)
