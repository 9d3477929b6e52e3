"""The doctor finds what was planted in real text, and leaves the rest alone."""

import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from regard.data.doctor.examine import examine
from regard.data.doctor.leakage import HeldOut, between
from regard.data.example import Example, Location
from tests.data.doctor.plant import KINDS, Pair, clean_rows, plant, slipped

DATA = Path(__file__).parents[3] / "../shared/data"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="needs the shared corpora")


@cache
def lines(name: str) -> list[str]:
    return gzip.decompress((DATA / f"{name}.gz").read_bytes()).decode().split("\n")[:-1]


def read(name: str, target: str = "de") -> list[Pair]:
    return list(zip(lines(f"{name}.en"), lines(f"{name}.{target}"), strict=True))


def examples(name: str, pairs: list[Pair]) -> list[Example]:
    return [Example(Location(name, line), *pair) for line, pair in enumerate(pairs, 1)]


@pytest.mark.parametrize(
    ("pairs", "each", "train"),
    [(3000, 20, "valid"), pytest.param(320_000, 100, "train", marks=pytest.mark.slow)],
)
def test_every_kind_is_found_and_clean_lines_stay(pairs: int, each: int, train: str) -> None:
    foreign = lines("multi30k/val.fr") + lines("multi30k/val.cs")
    test = read("europarl_deen/test")
    # The small one takes text that is quick to unpack: both held-out sets, half of the second as test data.
    clean = read(f"europarl_deen/{train}") if train == "train" else [*read("europarl_deen/valid"), *test[:1000]]
    planted = plant(clean[:pairs], foreign, test[1000:], each)
    found = examine(planted.examples, {"test": examples("test.en", test[1000:])})
    for kind in KINDS:
        share = np.isin(planted.rows[kind.name], found.rows(kind.rule)).mean()
        assert share >= 0.95, f"{kind.name}: {share:.1%}"
    assert found.removed()[clean_rows(planted)].mean() < 0.005
    assert found.alignment is not None
    assert found.alignment.slips == ()


def test_a_slip_in_real_text_is_located() -> None:
    """Captions vary less in length than speeches: the harder corpus, and quick to unpack."""
    pairs = examples("train.en", read("multi30k/train")[:8000])
    found = examine(slipped(pairs, 4999), near=False)
    assert found.alignment is not None
    (slip,) = found.alignment.slips
    assert abs(slip.first + 1 - 5000) <= 50
    assert slip.shift == -1
    assert found.removed()[5060:].mean() > 0.98


def test_the_leakage_of_multi30k_as_it_is() -> None:
    """Counted in another way here: one French validation caption is in train with its translation."""
    train = read("multi30k/train", "fr")
    ours = HeldOut.read(examples("train", train)).prints
    folds = [folded(pair) for pair in train]
    sources, targets, pairs = {pair[0] for pair in folds}, {pair[1] for pair in folds}, set(folds)
    counts = []
    for name in ("val", "test_2016_flickr", "test_2017_flickr"):
        held = read(f"multi30k/{name}", "fr")
        leak = between("train", ours, name, HeldOut.read(examples(name, held)).prints)
        theirs = [folded(pair) for pair in held]
        assert leak.sources == sum(pair[0] in sources for pair in theirs)
        assert leak.targets == sum(pair[1] in targets for pair in theirs)
        assert leak.pairs == sum(pair in pairs for pair in theirs)
        counts.append((leak.sources, leak.targets, leak.pairs))
    assert counts == [(1, 3, 1), (0, 0, 0), (0, 1, 0)]


def folded(pair: Pair) -> Pair:
    return " ".join(pair[0].casefold().split()), " ".join(pair[1].casefold().split())
