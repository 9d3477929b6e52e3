"""Lines of held-out data that are in the training data."""

from regard.data.doctor.detectors.leakage import HeldOutFingerprints, count_leaks, find_leaks
from tests.data.doctor.factories import make_examples, make_fingerprints


def test_a_leak_is_flagged_once_by_its_strongest_rule() -> None:
    fingerprints = make_fingerprints(("One", "Eins"), ("two", "drei"), ("three", "drei"), ("four", "vier"))
    held_out = HeldOutFingerprints.read(
        make_examples(("one ", "EINS"), ("Two", "zwei"), ("tree", "drei"), ("five", "fünf"))
    )
    rows_by_rule = {
        rule: (rows.tolist(), held_out_rows.tolist())
        for rule, rows, held_out_rows in find_leaks(fingerprints, held_out, has_pairs=True)
    }
    assert rows_by_rule == {"leaked-pair": ([0], [0]), "leaked-source": ([1], [1]), "leaked-target": ([2], [2])}
    leak = count_leaks("train", fingerprints, "test", held_out.fingerprints)
    assert (leak.lines, leak.sources, leak.targets, leak.pairs) == (4, 2, 2, 1)


def test_texts_without_targets_share_no_target() -> None:
    fingerprints = make_fingerprints(("one", None), ("two", None))
    assert count_leaks("train", fingerprints, "test", fingerprints).targets == 0
    assert count_leaks("train", fingerprints, "test", fingerprints).pairs == 2
