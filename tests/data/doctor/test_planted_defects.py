"""The doctor finds defects planted in real text and accepts the clean lines."""

import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from regard.data.doctor.check import check_corpus
from regard.data.doctor.detectors.leakage import HeldOutFingerprints, count_leaks
from regard.data.example import Example, Location
from tests.data.doctor.planted_defects import DEFECT_KINDS, Pair, clean_rows, plant, shift_targets

DATA = Path(__file__).parents[3] / "../shared/data"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="needs the shared corpora")


@cache
def read_lines(name: str) -> list[str]:
    return gzip.decompress((DATA / f"{name}.gz").read_bytes()).decode().split("\n")[:-1]


def read_pairs(name: str, target: str = "de") -> list[Pair]:
    return list(zip(read_lines(f"{name}.en"), read_lines(f"{name}.{target}"), strict=True))


def make_examples(name: str, pairs: list[Pair]) -> list[Example]:
    return [Example(Location(name, line), *pair) for line, pair in enumerate(pairs, 1)]


@pytest.mark.parametrize(
    ("pairs", "each", "train"),
    [(3000, 20, "valid"), pytest.param(320_000, 100, "train", marks=pytest.mark.slow)],
)
def test_every_kind_is_found_and_clean_lines_stay(pairs: int, each: int, train: str) -> None:
    foreign = read_lines("multi30k/val.fr") + read_lines("multi30k/val.cs")
    test = read_pairs("europarl_deen/test")
    # The small case uses text that decompresses fast: both held-out sets, half of the second as test data.
    clean = (
        read_pairs(f"europarl_deen/{train}") if train == "train" else [*read_pairs("europarl_deen/valid"), *test[:1000]]
    )
    planted = plant(clean[:pairs], foreign, test[1000:], each)
    corpus_report = check_corpus(planted.examples, {"test": make_examples("test.en", test[1000:])})
    for kind in DEFECT_KINDS:
        share = np.isin(planted.rows[kind.name], corpus_report.find_rows(kind.rule)).mean()
        assert share >= 0.95, f"{kind.name}: {share:.1%}"
    assert corpus_report.removal_mask()[clean_rows(planted)].mean() < 0.005
    assert corpus_report.alignment is not None
    assert corpus_report.alignment.misaligned == ()


def test_a_shift_in_real_text_is_located() -> None:
    """Captions vary less in length than speeches, so this corpus is harder; it also decompresses fast."""
    pairs = make_examples("train.en", read_pairs("multi30k/train")[:8000])
    corpus_report = check_corpus(shift_targets(pairs, 4999), near_duplicates=False)
    assert corpus_report.alignment is not None
    (stretch,) = corpus_report.alignment.misaligned
    assert abs(stretch.first_row + 1 - 5000) <= 50
    assert stretch.shift == -1
    assert corpus_report.removal_mask()[5060:].mean() > 0.98


def test_the_leakage_of_multi30k() -> None:
    """An independent count: one French validation caption is in train with its translation."""
    train = read_pairs("multi30k/train", "fr")
    train_fingerprints = HeldOutFingerprints.read(make_examples("train", train)).fingerprints
    folded_pairs = [fold_pair(pair) for pair in train]
    sources, targets, pairs = {pair[0] for pair in folded_pairs}, {pair[1] for pair in folded_pairs}, set(folded_pairs)
    counts = []
    for name in ("val", "test_2016_flickr", "test_2017_flickr"):
        held_out = read_pairs(f"multi30k/{name}", "fr")
        leak = count_leaks(
            "train", train_fingerprints, name, HeldOutFingerprints.read(make_examples(name, held_out)).fingerprints
        )
        folded_held_out = [fold_pair(pair) for pair in held_out]
        assert leak.sources == sum(pair[0] in sources for pair in folded_held_out)
        assert leak.targets == sum(pair[1] in targets for pair in folded_held_out)
        assert leak.pairs == sum(pair in pairs for pair in folded_held_out)
        counts.append((leak.sources, leak.targets, leak.pairs))
    assert counts == [(1, 3, 1), (0, 0, 0), (0, 1, 0)]


def fold_pair(pair: Pair) -> Pair:
    return " ".join(pair[0].casefold().split()), " ".join(pair[1].casefold().split())
