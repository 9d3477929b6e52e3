"""Hashes of character n-grams."""

from regard.data.doctor.detectors.ngrams import hash_ngrams, to_code_points


def test_ngram_hashes_depend_on_order_and_position() -> None:
    text = to_code_points(["abcabd", "dcba"], 5)
    hashes = hash_ngrams(text.codes, 3)
    assert hashes[1] != hashes[4]  # abc, abd
    assert len(set(hashes.tolist())) == len(hashes)
    assert text.ends[0] == text.starts[1] == 8
