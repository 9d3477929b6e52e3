"""How much of a batch is padding, on real pairs."""

import gzip
from collections import Counter
from itertools import islice

import pytest

from regard.config.run import ByteBpe
from regard.data.example import Example, Where
from regard.data.loader import Loader
from regard.data.order import Rules
from regard.data.shards import Shards
from regard.data.tasks import task_for
from regard.data.tokenise import tokenise
from regard.text.learn import learn
from regard.text.vocabularies import TokenizerPair
from tests.data.made import SHARED

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")


def padding(corpus: str, pairs: int, vocabulary: int, learned_from: int) -> float:
    """The share of padding in one epoch; every pair must come once, no batch be over its budget, and sizes be few."""
    sides = []
    for side in ("en", "de"):
        with gzip.open(SHARED / corpus / f"train.{side}.gz", "rb") as file:
            sides.append([line.decode().rstrip("\n") for line in islice(file, pairs)])
    words = learn(sides[0][:learned_from] + sides[1][:learned_from], ByteBpe(vocabulary=vocabulary))
    examples = [Example(Where("x", n), *pair) for n, pair in enumerate(zip(*sides, strict=True), 1)]
    shards = Shards([tokenise(examples, words, words)])
    loader = Loader(shards, task_for("translate", TokenizerPair.joint(words)), Rules())
    cells = real = 0
    seen, sizes = Counter[int](), set[int]()
    for batch in loader.epoch():
        assert batch.source is not None
        assert batch.source_real is not None
        assert max(batch.source.numel(), batch.labels.numel()) <= 4096
        cells += batch.source.numel() + batch.labels.numel()
        real += int(batch.source_real.sum()) + batch.count
        sizes |= {batch.source.numel(), batch.labels.numel()}
        seen.update(batch.samples.tolist())
    assert len(sizes) <= 64
    assert seen == Counter(range(len(examples)))
    return 1 - real / cells


def test_multi30k() -> None:
    assert padding("multi30k", 29_000, 4000, learned_from=1000) <= 0.06


@pytest.mark.slow
def test_europarl() -> None:
    """A fifth of the corpus: with more pairs there is less padding (`bench.data` tells it for all of them)."""
    assert padding("europarl_deen", 64_000, 16_000, learned_from=8_000) <= 0.05
