import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.data.shards.shard import Shards, split_long
from tests.data.factories import make_random_shards, make_shard


def test_pairs_of_all_shards_one_after_the_other() -> None:
    samples = [([1, 2], [3]), ([], [4, 5, 6]), ([7], [8])]
    shards = Shards([make_shard(samples[:2], name="x"), make_shard([], name="y"), make_shard(samples[2:], name="z")])
    assert list(shards.iter_pairs()) == samples
    assert list(shards.iter_pairs(np.array([2, 0]))) == [samples[0], samples[2]]


def test_samples_are_numbered_across_shards() -> None:
    corpus = make_random_shards([4, 0, 3], weights={"s2": 2.5})
    assert (len(corpus), corpus.counts, corpus.weights) == (7, [4, 0, 3], (1.0, 1.0, 2.5))
    assert [str(corpus.locate(number)) for number in (0, 3, 4, 6)] == [f"made.txt:{n}" for n in (1, 4, 1, 3)]


def test_the_identity_of_a_corpus_is_its_content() -> None:
    same, again = make_random_shards([4, 3]), make_random_shards([4, 3])
    assert same.identity == again.identity
    assert make_random_shards([4, 3], seed=1).identity != same.identity
    assert Shards([*same.shards[::-1]]).identity != same.identity


def test_shards_of_different_kinds_are_rejected() -> None:
    with pytest.raises(RegardError, match="but tags has source and tags"):
        Shards([make_shard([([1], [2])]), make_shard([([1], [1])], ("source", "tags"), source="tags")])
    with pytest.raises(RegardError, match="no samples"):
        Shards([])


def test_long_documents_are_split() -> None:
    text = make_shard([(list(range(10)),), ([],), ([50, 51],), (list(range(20, 28)),)], ("source",))
    pieces = split_long(text, 4)
    assert pieces.lengths.tolist() == [[4, 4, 2, 0, 2, 4, 4]]
    assert pieces.tokens.tolist() == text.tokens.tolist()
    assert [pieces.locate(number).line for number in range(len(pieces))] == [1, 1, 1, 2, 3, 4, 4]
    assert Shards([pieces]).identity not in (Shards([text]).identity, Shards([split_long(text, 5)]).identity)
    with pytest.raises(RegardError, match="Only samples with a single stream"):
        split_long(make_shard([([1], [2])]), 4)


def test_shards_of_two_tokenizers_are_rejected() -> None:
    first, second = (
        make_shard([([1], [2])], made_from={"source": "a"}),
        make_shard([([1], [2])], made_from={"source": "b"}),
    )
    with pytest.raises(RegardError, match="different tokenizers"):
        Shards([first, second])
