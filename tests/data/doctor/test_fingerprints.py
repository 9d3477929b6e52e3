"""Fingerprints of lines: what they tell apart, and repeats by row."""

import numpy as np

from regard.data.doctor.fingerprints import Fingerprints, find_held_out, find_repeats, fold
from regard.data.example import Example, Location
from tests.data.doctor.factories import make_fingerprints


def test_repeats_name_the_first() -> None:
    rows, first_rows = find_repeats(np.array([3, 1, 3, 2, 1, 3], np.uint64))
    assert rows.tolist() == [2, 4, 5]
    assert first_rows.tolist() == [0, 1, 0]
    assert [part.tolist() for part in find_repeats(np.empty(0, np.uint64))] == [[], []]


def test_find_held_out_names_the_first_row() -> None:
    rows, held_out_rows = find_held_out(np.array([5, 6, 7, 9], np.uint64), np.array([9, 6, 6], np.uint64))
    assert (rows.tolist(), held_out_rows.tolist()) == ([1, 3], [1, 0])
    assert find_held_out(np.array([5], np.uint64), np.empty(0, np.uint64))[0].tolist() == []


def test_fingerprints_tell_source_target_label_and_pair_apart() -> None:
    fingerprints = make_fingerprints(("a", "b"), ("b", "a"), ("a", "b "), ("A", "b"), ("a", None), should_fold=False)
    assert fingerprints.pair[0] == fingerprints.pair[2]
    assert len(set(fingerprints.pair.tolist())) == 4
    assert fingerprints.source[0] == fingerprints.source[4]
    assert fingerprints.target[4] == 0
    label = Fingerprints(should_fold=False)
    label.add(Example(Location("a", 1), "good", label="1"))
    label.add(Example(Location("a", 2), "good", label="0"))
    assert label.pair[0] != label.pair[1]


def test_fold_ignores_case_spacing_and_accent_encoding() -> None:
    assert fold("Cafe\u0301  AU\u00a0LAIT ") == fold("café au lait")
    assert fold("café") != fold("cafe")
