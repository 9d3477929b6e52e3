"""Entity tags: the decoded sequence is the best of those that the scheme allows."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from regard.decode.tag_sequence import TagScheme
from regard.measure.entities import count_entities

BIO = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
BIOES = ("B-PER", "I-PER", "E-PER", "S-PER", "O", "S-LOC")
PARTLY = ("B-x", "O", "B-y", "E-y", "I-x")  # x has no E: it may end with B or I
SCHEMES = (BIO, BIOES, PARTLY)


def make_scheme(labels: tuple[str, ...]) -> TagScheme:
    scheme = TagScheme.from_labels(labels)
    assert scheme is not None
    return scheme


def is_well_formed(tags: list[str], labels: tuple[str, ...]) -> bool:
    """The definition of the schemes, written as a walk over the tags with the entity that is open."""
    inside: str | None = None
    for tag in tags:
        mark, _, kind = tag.partition("-")
        must_continue = inside is not None and f"E-{inside}" in labels
        if mark in ("I", "E"):
            if inside != kind:
                return False
        elif must_continue:
            return False
        inside = kind if mark in ("B", "I") else None
    return inside is None or f"E-{inside}" not in labels


def find_best(logprobs: NDArray[np.float64], labels: tuple[str, ...]) -> tuple[float, list[tuple[int, ...]]]:
    """Try every sequence."""
    scores = {
        tags: sum(logprobs[position, tag] for position, tag in enumerate(tags))
        for tags in product(range(len(labels)), repeat=len(logprobs))
        if is_well_formed([labels[tag] for tag in tags], labels)
    }
    best = max(scores.values())
    return best, [tags for tags, score in scores.items() if score >= best - 1e-9]


@given(st.sampled_from(SCHEMES), st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_the_best_allowed_sequence_is_found(labels: tuple[str, ...], seed: int, length: int) -> None:
    logits = 3 * np.random.default_rng(seed).standard_normal((length, len(labels)))
    logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    tags = make_scheme(labels).decode(logprobs)
    assert is_well_formed([labels[tag] for tag in tags], labels)
    if length:
        best, sequences = find_best(logprobs, labels)
        assert tuple(tags) in sequences
        assert sum(logprobs[range(length), tags]) == pytest.approx(best)


@pytest.mark.parametrize("labels", SCHEMES)
def test_allowed_sequences_are_those_of_the_definition(labels: tuple[str, ...]) -> None:
    scheme = make_scheme(labels)
    counts = {True: 0, False: 0}
    for length in range(1, 4):
        for tags in product(range(len(labels)), repeat=length):
            expected = is_well_formed([labels[tag] for tag in tags], labels)
            assert scheme.allows(tags) == expected
            counts[expected] += 1
    assert min(counts.values()) > 10


def test_what_is_allowed_already_stays() -> None:
    tags = [1, 2, 0, 3, 3, 4]
    logprobs = np.log(np.full((6, 5), 0.1) + 0.5 * np.eye(5)[tags])
    assert make_scheme(BIO).decode(logprobs) == tags


@pytest.mark.parametrize(
    "labels",
    [("NOUN", "VERB"), ("O", "NOUN"), ("O",), ("B-x", "I-x"), ("O", "I-x"), ("O", "B-x", "I-y"), ("O", "B-x", "L-x")],
)
def test_other_labels_have_no_scheme(labels: tuple[str, ...]) -> None:
    assert TagScheme.from_labels(labels) is None


def test_constraints_raise_entity_f1() -> None:
    """Noisy scores of 400 sentences: F1 is 75.7 by word and 82.6 with constraints."""
    rng, scheme = np.random.default_rng(1), make_scheme(BIO)
    gold: list[list[str]] = []
    free: list[list[str]] = []
    constrained: list[list[str]] = []
    for _ in range(400):
        tags = [0]
        for _ in range(9):
            choices = np.flatnonzero(scheme.follows[tags[-1]])
            weights = np.where(choices == 0, 4.0, 1.0)
            tags.append(int(rng.choice(choices, p=weights / weights.sum())))
        scores = 2.5 * np.eye(5)[tags] + rng.standard_normal((10, 5))
        for sequences, found in ((gold, tags), (free, scores.argmax(axis=1)), (constrained, scheme.decode(scores))):
            sequences.append([BIO[tag] for tag in found])
    before, after = (100 * count_entities(predicted, gold).f1 for predicted in (free, constrained))
    assert (round(before, 1), round(after, 1)) == (75.7, 82.6)
