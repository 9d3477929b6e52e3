"""Cutting samples into batches: shapes, budgets and packing."""

import gzip
from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.config.tokenizers import ByteBpeConfig
from regard.data.batches.cutting import BatchShapes, cut_by_tokens, pack_documents, sort_by_length
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.example import Example, Location
from regard.data.shards.shard import Shards
from regard.data.shards.tokenize import store_examples
from regard.tasks.translation.rows import TranslationRows
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.data.batches.factories import make_lengths
from tests.data.factories import SHARED

# Cuts


def test_batches_are_as_large_as_the_budget_allows() -> None:
    """With a budget too small for rounded shapes, batches take every row that fits."""
    sizes = np.sort(np.random.default_rng(1).integers(1, 50, 1000))
    starts = cut_by_tokens(sizes, BatchShapes(200, 50))
    ends = [*starts[1:], 1000]
    for start, end in zip(starts, ends, strict=True):
        assert (end - start) * sizes[end - 1] <= 200
        assert end == 1000 or (end + 1 - start) * sizes[end] > 200


@pytest.mark.parametrize("budget", [1000, 2048, 4096, 10_000])
def test_batches_have_few_shapes_and_nearly_fill_the_budget(budget: int) -> None:
    max_length = 200
    sizes = np.sort(np.random.default_rng(2).gamma(3.0, 14.0, 100_000).astype(int).clip(1, max_length))
    shapes = BatchShapes(budget, max_length)
    starts = cut_by_tokens(sizes, shapes)
    products = Counter[int]()
    for start, end in pairwise([*starts, sizes.size]):
        width = shapes.padded_width(end - start, int(sizes[end - 1]))
        assert sizes[end - 1] <= width <= max_length
        assert (end - start) * width <= budget
        products[(end - start) * width] += 1
    assert len(products) <= 64
    odd = sum(count for product, count in products.items() if product % max(shapes.width_multiples))
    assert odd <= 0.05 * len(starts)
    assert len(starts) <= 1.1 * count_greedy_batches(sizes.tolist(), budget)
    assert sum(product * count for product, count in products.items()) <= 1.03 * sizes.sum()


def count_greedy_batches(sizes: list[int], max_tokens: int) -> int:
    """Count the batches if each takes every row that fits."""
    batches, start = 0, 0
    for end, size in enumerate(sizes):
        if not batches or (end + 1 - start) * size > max_tokens:
            batches, start = batches + 1, end
    return batches


@pytest.mark.parametrize("budget", [1, 7, 100, 1000, 4096, 4160, 65_536])
def test_every_length_up_to_the_budget_fits(budget: int) -> None:
    for max_length in (1, 50, budget):
        shapes = BatchShapes(budget, min(max_length, budget))
        for length in range(1, min(max_length, budget) + 1, 1 + budget // 500):
            rows = shapes.max_rows(length)
            assert rows >= 1
            assert rows >= 0.8 * (budget // length) - 1
            for n_rows in {*range(1, min(rows, 300) + 1), rows}:
                assert length <= shapes.padded_width(n_rows, length) <= shapes.max_length
                assert n_rows * shapes.padded_width(n_rows, length) <= budget


def test_neighbours_have_similar_lengths() -> None:
    lengths = make_lengths(20_000, 7)
    order = sort_by_length(lengths)
    assert sorted(order.tolist()) == list(range(20_000))
    assert (np.diff(lengths[:, order].max(axis=0)) >= 0).all()

    def waste(indices: NDArray[np.int64]) -> float:
        cuts = cut_by_tokens(lengths[:, indices].max(axis=0), BatchShapes(4096, 512))
        sizes = np.diff([*cuts, indices.size])
        padded = sum(int((np.maximum.reduceat(side[indices], cuts) * sizes).sum()) for side in lengths)
        return 1 - int(lengths.sum()) / padded

    assert waste(order) < 0.6 * waste(np.argsort(lengths.max(axis=0), kind="stable"))


@pytest.mark.parametrize("row", [1, 4, 7, 1000])
def test_packing_covers_every_token_once(row: int) -> None:
    lengths = np.random.default_rng(2).integers(1, 30, 60)
    packed = pack_documents(lengths, row)
    covered = [
        (int(document), int(begin) + place)
        for document, begin, length in zip(packed.documents, packed.starts, packed.lengths, strict=True)
        for place in range(length)
    ]
    assert covered == [(document, place) for document, length in enumerate(lengths) for place in range(length)]
    filled = np.add.reduceat(packed.lengths, packed.row_offsets[:-1])
    assert (filled[:-1] == row).all()
    assert 0 < filled[-1] <= row


needs_shared_data = pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")


def padding_share(corpus: str, pairs: int, vocabulary: int, learned_from: int) -> float:
    """Return the share of padding in one epoch; check that pairs come once, within the budget, in few sizes."""
    sides = []
    for side in ("en", "de"):
        with gzip.open(SHARED / corpus / f"train.{side}.gz", "rb") as file:
            sides.append([line.decode().rstrip("\n") for line in islice(file, pairs)])
    tokenizer = learn(sides[0][:learned_from] + sides[1][:learned_from], ByteBpeConfig(vocabulary=vocabulary))
    examples = [Example(Location("x", n), *pair) for n, pair in enumerate(zip(*sides, strict=True), 1)]
    shards = Shards([store_examples(examples, TokenizerPair.joint(tokenizer))])
    loader = Loader(shards, TranslationRows(tokenizer.specials, tokenizer.specials), OrderSettings())
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


@needs_shared_data
def test_padding_of_multi30k_is_at_most_6_percent() -> None:
    assert padding_share("multi30k", 29_000, 4000, learned_from=1000) <= 0.06


@needs_shared_data
@pytest.mark.slow
def test_padding_of_europarl_is_at_most_5_percent() -> None:
    """A fifth of the corpus: with more pairs there is less padding (`bench.data` measures it for all of them)."""
    assert padding_share("europarl_deen", 64_000, 16_000, learned_from=8_000) <= 0.05
