"""How much of a batch is padding, on real pairs."""

import gzip
from collections import Counter
from itertools import islice

import pytest

from regard.config.run import ByteBpeConfig
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.batches.tasks import build_task
from regard.data.example import Example, Location
from regard.data.shards.shard import Shards
from regard.data.shards.tokenize import store_examples
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.data.factories import SHARED

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")


def padding_share(corpus: str, pairs: int, vocabulary: int, learned_from: int) -> float:
    """Return the share of padding in one epoch; check that pairs come once, within the budget, in few sizes."""
    sides = []
    for side in ("en", "de"):
        with gzip.open(SHARED / corpus / f"train.{side}.gz", "rb") as file:
            sides.append([line.decode().rstrip("\n") for line in islice(file, pairs)])
    tokenizer = learn(sides[0][:learned_from] + sides[1][:learned_from], ByteBpeConfig(vocabulary=vocabulary))
    examples = [Example(Location("x", n), *pair) for n, pair in enumerate(zip(*sides, strict=True), 1)]
    shards = Shards([store_examples(examples, TokenizerPair.joint(tokenizer))])
    loader = Loader(shards, build_task("translate", TokenizerPair.joint(tokenizer)), OrderSettings())
    cells = n_tokens = 0
    seen, sizes = Counter[int](), set[int]()
    for batch in loader.iter_epoch():
        assert batch.source is not None
        assert batch.source_valid is not None
        assert max(batch.source.numel(), batch.labels.numel()) <= 4096
        cells += batch.source.numel() + batch.labels.numel()
        n_tokens += int(batch.source_valid.sum()) + batch.label_count
        sizes |= {batch.source.numel(), batch.labels.numel()}
        seen.update(batch.samples.tolist())
    assert len(sizes) <= 64
    assert seen == Counter(range(len(examples)))
    return 1 - n_tokens / cells


def test_multi30k() -> None:
    assert padding_share("multi30k", 29_000, 4000, learned_from=1000) <= 0.06


@pytest.mark.slow
def test_europarl() -> None:
    """A fifth of the corpus: with more pairs there is less padding (`bench.data` measures it for all of them)."""
    assert padding_share("europarl_deen", 64_000, 16_000, learned_from=8_000) <= 0.05
